package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// check holds a value against the bounds of its declaration.
func (s setting) check(v reflect.Value) error {
	if s.secret() || s.list() {
		return nil
	}
	if err := s.checkEnum(formatScalar(v)); err != nil {
		return err
	}
	if d, ok := v.Interface().(Duration); ok && d == Forever {
		if s.tag.Get("forever") == "" {
			return errors.New("forever is not possible here: write a duration, as in 90s, 1h30m or 7d")
		}
		return nil
	}
	if least, ok := s.bound("min"); ok && v.Int() < least.Int() {
		return fmt.Errorf("%v is less than the smallest value, %v%s", v, least, unitHint(v))
	}
	if most, ok := s.bound("max"); ok && v.Int() > most.Int() {
		return fmt.Errorf("%v is more than the largest value, %v", v, most)
	}
	return nil
}

// unitHint helps who wrote 64 and meant 64MiB.
func unitHint(v reflect.Value) string {
	if b, ok := v.Interface().(Bytes); ok && b > 0 && b < KiB {
		return fmt.Sprintf(": without a unit it is bytes; write %[1]dMiB or %[1]dGiB", int64(b))
	}
	return ""
}

// bound is the value of the tag min or max.
func (s setting) bound(key string) (reflect.Value, bool) {
	text, ok := s.tag.Lookup(key)
	if !ok {
		return reflect.Value{}, false
	}
	v := reflect.New(s.typ).Elem()
	if err := parseScalar(v, text); err != nil {
		panic("config: " + key + " of " + s.path + ": " + err.Error())
	}
	return v, true
}

// checkEnum holds a value against the list of those that there are.
func (s setting) checkEnum(text string) error {
	values := s.enum()
	if values == nil || slices.Contains(values, text) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s%s", text, strings.Join(values, ", "), didYouMean(text, values))
}

// rangeText describes the bounds for people, empty if there are none.
func (s setting) rangeText() string {
	if values := s.enum(); values != nil {
		return strings.Join(values, ", ")
	}
	least, ok := s.bound("min")
	if !ok {
		return ""
	}
	most, _ := s.bound("max")
	text := fmt.Sprintf("%v to %v", least, most)
	if s.tag.Get("forever") != "" {
		text += ", or forever"
	}
	return text
}
