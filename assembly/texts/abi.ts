// What a host of core-texts.wasm may rely on, besides assembly/abi.ts. The form is the same.

// --- codes: texts of models; last_error_offset is a place in the document for TEXTS_MALFORMED and TEXTS_TOO_DEEP
export const TEXTS_MALFORMED: i32 = -401 // not a JSON object, or not UTF-8
export const TEXTS_TOO_DEEP: i32 = -402 // more than 200 levels
export const TEXTS_TOO_LARGE: i32 = -403 // more bytes than the limit of the rewriter
export const TEXTS_HIDDEN: i32 = -404 // a member occurs twice, or differs from a guarded one only in case
export const TEXTS_NOT_TEXT: i32 = -405 // numbers or lists where only texts can be guarded
export const TEXTS_UNDECIDED: i32 = -406 // a pattern holds back more than the limit
export const TEXTS_TOO_MANY: i32 = -407 // more choices or open parts than a stream may have
export const TEXTS_OTHER_FORMAT: i32 = -408 // an object, but no message of the format
export const TEXTS_OVER: i32 = -409 // a stream has text after its end

// --- formats and messages of texts_new ---------------------------------------------------------------
export const TEXTS_COMPLETIONS: i32 = 1 // chat completions
export const TEXTS_MESSAGES: i32 = 2
export const TEXTS_RESPONSES: i32 = 3
export const TEXTS_EMBEDDINGS: i32 = 4
export const TEXTS_TOKEN_COUNT: i32 = 5 // a request of Messages whose tokens are counted
export const TEXTS_REQUEST: i32 = 1 // a request
export const TEXTS_ANSWER: i32 = 2 // a whole answer
export const TEXTS_STREAM: i32 = 3 // an answer of server-sent events
export const TEXTS_ERROR: i32 = 4 // an error in any form, of which every string is masked

// --- texts record: what texts_record writes -------------------------------------------------------------
//
//      +0  INPUT_TOKENS (f64)   +8  OUTPUT_TOKENS (f64)   +16 CACHED_TOKENS (f64)
//      +24 BYTES (f64)          +32 UNCOUNTED (f64)       +40 FLAGS   +44 REJECTED
//      +48 MODEL s e
//
export const TEXTS_INPUT_TOKENS: i32 = 0 // f64; as the answer reports
export const TEXTS_OUTPUT_TOKENS: i32 = 8 // f64
export const TEXTS_CACHED_TOKENS: i32 = 16 // f64; tokens of the input that TEXTS_INPUT_TOKENS does not include
export const TEXTS_BYTES: i32 = 24 // f64; bytes of the texts that were read
export const TEXTS_UNCOUNTED: i32 = 32 // f64; bytes of streamed text since the last report of usage
export const TEXTS_FLAGS: i32 = 40 // bits below
export const TEXTS_REJECTED: i32 = 44 // index of the first guard that rejects the texts; -1
export const TEXTS_MODEL: i32 = 48 // span, valid until the next call on the rewriter; empty if unknown
export const TEXTS_RECORD_SIZE: i32 = 56 // bytes of the record
export const TEXTS_HAS_INPUT: i32 = 1 // the answer reports input tokens
export const TEXTS_HAS_OUTPUT: i32 = 2 // the answer reports output tokens
export const TEXTS_IS_STREAM: i32 = 4 // the request asks for a stream
