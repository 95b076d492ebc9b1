package s3

import (
	"context"
	"io"

	"firn/internal/blob"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// putParts uploads in parts, one after the other. All parts but the last have the
// same size: some stores demand it. The object appears, complete, when the upload
// is completed; the condition is checked then. An upload that fails is aborted, so
// that its parts are not kept and billed; a lifecycle rule of the bucket should
// abort those that a crash leaves.
func (s *Store) putParts(ctx context.Context, k *string, body blob.Body, opts blob.PutOptions) (etag string, err error) {
	id, err := s.createUpload(ctx, k)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			s.abortUpload(ctx, k, id)
		}
	}()
	var parts []types.CompletedPart
	size := partSize(s.opts.PartSize, body.Size())
	for off := int64(0); off < body.Size(); off += size {
		n := min(size, body.Size()-off)
		part, err := s.uploadPart(ctx, k, id, int32(len(parts)+1), io.NewSectionReader(body, off, n))
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	rctx, cancel := context.WithTimeoutCause(ctx, s.budget(body.Size()), errStalled)
	defer cancel()
	out, err := s.client.CompleteMultipartUpload(rctx, &s3.CompleteMultipartUploadInput{
		Bucket:          &s.opts.Bucket,
		Key:             k,
		UploadId:        id,
		IfNoneMatch:     ifNoneMatch(opts),
		IfMatch:         ifMatch(opts),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return "", s.meaning(ctx, err)
	}
	return aws.ToString(out.ETag), nil
}

// partSize grows the configured size, in steps of a MiB, until the parts are few
// enough.
func partSize(configured, total int64) int64 {
	const step = 1 << 20
	need := (total + maxParts - 1) / maxParts
	if need <= configured {
		return configured
	}
	return (need + step - 1) / step * step
}

func (s *Store) createUpload(ctx context.Context, k *string) (*string, error) {
	in := &s3.CreateMultipartUploadInput{
		Bucket:               &s.opts.Bucket,
		Key:                  k,
		StorageClass:         types.StorageClass(s.opts.StorageClass),
		ServerSideEncryption: types.ServerSideEncryption(s.opts.SSE),
		SSEKMSKeyId:          optional(s.opts.SSEKeyID),
	}
	if s.opts.Checksum == ChecksumAuto {
		// The parts carry this checksum by default, and stores refuse them at the
		// end if the upload was not begun with it.
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32
	}
	rctx, cancel := context.WithTimeoutCause(ctx, s.budget(0), errStalled)
	defer cancel()
	out, err := s.client.CreateMultipartUpload(rctx, in)
	if err != nil {
		return nil, s.meaning(ctx, err)
	}
	return out.UploadId, nil
}

func (s *Store) uploadPart(ctx context.Context, k, id *string, number int32, part *io.SectionReader) (types.CompletedPart, error) {
	w := s.watch(ctx, part.Size())
	defer w.stop()
	in := &s3.UploadPartInput{
		Bucket:        &s.opts.Bucket,
		Key:           k,
		UploadId:      id,
		PartNumber:    &number,
		Body:          &sending{part, w},
		ContentLength: aws.Int64(part.Size()),
	}
	if s.opts.Checksum == ChecksumAuto {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32
	}
	out, err := s.client.UploadPart(w.ctx, in)
	if err != nil {
		return types.CompletedPart{}, s.meaning(ctx, w.why(err))
	}
	return types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}, nil
}

// abortUpload also works after the caller has left.
func (s *Store) abortUpload(ctx context.Context, k, id *string) {
	actx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.budget(0))
	defer cancel()
	_, err := s.client.AbortMultipartUpload(actx, &s3.AbortMultipartUploadInput{Bucket: &s.opts.Bucket, Key: k, UploadId: id})
	if err != nil {
		s.opts.Logger.Warn("multipart upload was not aborted", "key", *k, "upload", *id, "err", s.meaning(actx, err))
	}
}
