// Package sluice masks prompts, counts tokens, limits rates and matches routes with the WebAssembly
// core of the Sluice gateway. Results are the same, byte for byte, as in the gateway.
//
// The core runs in wazero, so that the package needs neither cgo nor files. The module and the
// vocabularies are embedded.
//
// All types may be used by several goroutines at once, unless their documentation says otherwise.
// Calls run in parallel, in up to GOMAXPROCS instances of the core.
//
// A trap of the core would be a bug. The call during which it occurs returns an error, and so do the
// streams and rewriters of the same instance; other calls get a new instance.
package sluice
