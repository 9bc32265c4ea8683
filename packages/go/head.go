package sluice

import (
	"encoding/binary"
	"strings"

	"sluice.dev/sluice/internal/abi"
)

// head is a head record in scratch memory.
type head struct {
	on     *instance
	record address
}

// putHead writes the head of a request as the head reader of the core does.
func putHead(on *instance, request Request) address {
	h := head{on, on.alloc(abi.HeadSize + len(request.Headers)*abi.FieldSize)}
	// Absent parts are -1 -1.
	on.write(h.record, []byte(strings.Repeat("\xff", abi.HeadSize)))
	h.word(abi.HeadFieldCount, uint32(len(request.Headers)))
	h.word(abi.HeadFieldLimit, uint32(len(request.Headers)))
	h.word(abi.HeadFlags, 0)
	method := request.Method
	if method == "" {
		method = "GET"
	}
	path, query, hasQuery := strings.Cut(request.Target, "?")
	h.text(abi.HeadMethod, method)
	h.text(abi.HeadAuthority, request.Host)
	h.text(abi.HeadHost, hostOf(request.Host))
	h.text(abi.HeadPath, path)
	h.text(abi.HeadTarget, request.Target)
	if hasQuery {
		h.text(abi.HeadQuery, query)
	}
	for i, field := range request.Headers {
		at := abi.HeadFields + i*abi.FieldSize
		h.text(at+abi.FieldName, field[0])
		h.text(at+abi.FieldValue, field[1])
		h.word(at+abi.FieldInfo, 0)
	}
	return h.record
}

// hostOf returns an authority without its port, and without the dot of an absolute name.
func hostOf(authority string) string {
	host := authority
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		host = host[:colon]
	}
	return strings.TrimSuffix(host, ".")
}

func (h head) word(offset int, value uint32) {
	h.on.write(h.record+address(offset), binary.LittleEndian.AppendUint32(nil, value))
}

func (h head) text(offset int, text string) {
	start := h.on.alloc(len(text))
	h.on.write(start, []byte(text))
	h.word(offset, uint32(start))
	h.word(offset+4, uint32(start)+uint32(len(text)))
}
