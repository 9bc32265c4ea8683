package sluice

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// MaskHandler is a [slog.Handler] that masks the message and the attributes of records.
//
// Keys, numbers, times and booleans stay as they are. Errors and values with a String method are masked in that
// form, other values in their JSON form. If something cannot be masked, a note takes its place.
type MaskHandler struct {
	next slog.Handler
	mask *Mask
}

// NewMaskHandler returns a handler that passes masked records to next.
func NewMaskHandler(next slog.Handler, mask *Mask) *MaskHandler { return &MaskHandler{next, mask} }

// Enabled implements [slog.Handler].
func (h *MaskHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *MaskHandler) Handle(ctx context.Context, record slog.Record) error {
	masked := slog.NewRecord(record.Time, record.Level, h.text(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		masked.AddAttrs(h.attr(attr))
		return true
	})
	return h.next.Handle(ctx, masked)
}

// WithAttrs implements [slog.Handler].
func (h *MaskHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &MaskHandler{h.next.WithAttrs(h.attrs(attrs)), h.mask}
}

// WithGroup implements [slog.Handler].
func (h *MaskHandler) WithGroup(name string) slog.Handler {
	return &MaskHandler{h.next.WithGroup(name), h.mask}
}

func (h *MaskHandler) text(text string) string {
	masked, err := h.mask.MaskString(text)
	if err != nil {
		return fmt.Sprintf("<not shown: %v>", err)
	}
	return masked
}

func (h *MaskHandler) attrs(attrs []slog.Attr) []slog.Attr {
	masked := make([]slog.Attr, len(attrs))
	for i, each := range attrs {
		masked[i] = h.attr(each)
	}
	return masked
}

func (h *MaskHandler) attr(attr slog.Attr) slog.Attr {
	value := attr.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		value = slog.StringValue(h.text(value.String()))
	case slog.KindGroup:
		value = slog.GroupValue(h.attrs(value.Group())...)
	case slog.KindAny:
		value = h.any(value.Any())
	}
	return slog.Attr{Key: attr.Key, Value: value}
}

func (h *MaskHandler) any(value any) (masked slog.Value) {
	defer func() {
		// A logging call must not panic because of a method of a value.
		if recover() != nil {
			masked = slog.StringValue(fmt.Sprintf("<not shown: a value of the type %T>", value))
		}
	}()
	switch value := value.(type) {
	case nil:
		return slog.AnyValue(nil)
	case error:
		return slog.StringValue(h.text(value.Error()))
	case fmt.Stringer:
		return slog.StringValue(h.text(value.String()))
	case []byte:
		return slog.StringValue(h.text(string(value)))
	}
	data, err := json.Marshal(value)
	if err == nil {
		if value, err = decodeJSON(data); err == nil {
			change := func(text string) (string, error) { return h.mask.MaskString(text) }
			if value, err = mapTexts(value, change); err == nil {
				return slog.AnyValue(value)
			}
		}
	}
	return slog.StringValue(fmt.Sprintf("<not shown: a value of the type %T>", value))
}
