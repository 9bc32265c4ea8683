// Generated from assembly/ by npm run generate; do not edit.
/** not a JSON object, or not UTF-8 */
export const TEXTS_MALFORMED = -401
/** more than 200 levels */
export const TEXTS_TOO_DEEP = -402
/** more bytes than the limit of the rewriter */
export const TEXTS_TOO_LARGE = -403
/** a member occurs twice, or differs from a guarded one only in case */
export const TEXTS_HIDDEN = -404
/** numbers or lists where only texts can be guarded */
export const TEXTS_NOT_TEXT = -405
/** a pattern holds back more than the limit */
export const TEXTS_UNDECIDED = -406
/** more choices or open parts than a stream may have */
export const TEXTS_TOO_MANY = -407
/** an object, but no message of the format */
export const TEXTS_OTHER_FORMAT = -408
/** a stream has text after its end */
export const TEXTS_OVER = -409
/** chat completions */
export const TEXTS_COMPLETIONS = 1
export const TEXTS_MESSAGES = 2
export const TEXTS_RESPONSES = 3
export const TEXTS_EMBEDDINGS = 4
/** a request of Messages whose tokens are counted */
export const TEXTS_TOKEN_COUNT = 5
/** a request */
export const TEXTS_REQUEST = 1
/** a whole answer */
export const TEXTS_ANSWER = 2
/** an answer of server-sent events */
export const TEXTS_STREAM = 3
/** an error in any form, of which every string is masked */
export const TEXTS_ERROR = 4
/** f64; as the answer reports */
export const TEXTS_INPUT_TOKENS = 0
/** f64 */
export const TEXTS_OUTPUT_TOKENS = 8
/** f64; tokens of the input that TEXTS_INPUT_TOKENS does not include */
export const TEXTS_CACHED_TOKENS = 16
/** f64; bytes of the texts that were read */
export const TEXTS_BYTES = 24
/** f64; bytes of streamed text since the last report of usage */
export const TEXTS_UNCOUNTED = 32
/** bits below */
export const TEXTS_FLAGS = 40
/** index of the first guard that rejects the texts; -1 */
export const TEXTS_REJECTED = 44
/** span, valid until the next call on the rewriter; empty if unknown */
export const TEXTS_MODEL = 48
/** bytes of the record */
export const TEXTS_RECORD_SIZE = 56
/** the answer reports input tokens */
export const TEXTS_HAS_INPUT = 1
/** the answer reports output tokens */
export const TEXTS_HAS_OUTPUT = 2
/** the request asks for a stream */
export const TEXTS_IS_STREAM = 4
