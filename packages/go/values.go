package sluice

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// decodeJSON reads one JSON value. Numbers keep their digits.
func decodeJSON(data []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("sluice: text after a JSON value")
	}
	return value, nil
}

func encodeJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// mapTexts applies change to the strings and to the names of a decoded JSON value.
func mapTexts(value any, change func(string) (string, error)) (any, error) {
	switch value := value.(type) {
	case string:
		return change(value)
	case []any:
		changed := make([]any, len(value))
		for i, each := range value {
			var err error
			if changed[i], err = mapTexts(each, change); err != nil {
				return nil, err
			}
		}
		return changed, nil
	case map[string]any:
		changed := make(map[string]any, len(value))
		for name, each := range value {
			name, err := change(name)
			if err != nil {
				return nil, err
			}
			if changed[name], err = mapTexts(each, change); err != nil {
				return nil, err
			}
		}
		return changed, nil
	}
	return value, nil
}
