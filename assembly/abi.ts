/**
 * What a host of the core may rely on: return codes, record offsets, limits. One constant a line,
 * `export const NAME: i32 = value // meaning`: `scripts/generate-abi.mjs` reads this file and
 * writes `core.abi.json` and `src/engines/core/abi.ts` from it.
 *
 * Conventions of every export: inputs are (address, length) or (address, end address) of bytes in
 * this module's memory, with 16 readable bytes after the end; results are written to memory that
 * the caller names; handles are > 0; errors are < 0; time is f64 milliseconds; no call waits,
 * and each is bounded by its input. One instance, one thread.
 */

// --- version -------------------------------------------------------------------------------------
export const ABI_VERSION: i32 = 1 // raised by every incompatible change
export const FEATURE_HEAD: i32 = 1 // HTTP/1.1 head reader and chunked scanner
export const FEATURE_ROUTES: i32 = 2 // route tables
export const FEATURE_REGEX: i32 = 4 // regular expressions
export const FEATURE_TOKENS: i32 = 16 // token counts; vocabularies are loaded
export const FEATURE_RATE: i32 = 32 // rate buckets
export const FEATURE_TEXTS: i32 = 64 // texts of requests to models and of their answers

// --- codes: general ------------------------------------------------------------------------------
export const INCOMPLETE: i32 = -1 // the bytes end before the message part does; call again with more
export const ERROR_MEMORY: i32 = -2 // memory is sealed or exhausted; nothing was changed
export const ERROR_ARGUMENT: i32 = -3 // a handle, span or record that cannot be
export const ERROR_DUPLICATE: i32 = -4 // the id or the listener hostname is taken
export const ERROR_UNKNOWN: i32 = -5 // no such id or listener
export const NO_LISTENER: i32 = -6 // no listener takes this hostname
export const NO_ROUTE: i32 = -7 // the listener has no route for this request

// --- codes: regular expressions; last_error_offset is the byte of the pattern that is to blame -------
// Hosts of every language show these comments to the authors of patterns.
export const REGEX_PATTERN_TOO_LONG: i32 = -102 // the pattern is longer than 8192 bytes
export const REGEX_PROGRAM_TOO_LARGE: i32 = -103 // the pattern is too large once its repetitions are written out
export const REGEX_NESTED_TOO_DEEP: i32 = -104 // groups nest deeper than 200
export const REGEX_NO_SPANS: i32 = -105 // a pattern that was compiled with REGEX_MATCH_ONLY gives no spans
export const REGEX_TOO_MUCH_WORK: i32 = -106 // finding all matches reads the text too many times
export const REGEX_BAD_UTF8: i32 = -110 // the pattern is not valid UTF-8
export const REGEX_UNBALANCED_PAREN: i32 = -111 // a parenthesis has no partner
export const REGEX_UNCLOSED_CLASS: i32 = -112 // a character class has no closing bracket
export const REGEX_BAD_RANGE: i32 = -113 // a range in a character class runs backwards or ends in a class
export const REGEX_BAD_ESCAPE: i32 = -114 // unknown escape
export const REGEX_TRAILING_BACKSLASH: i32 = -115 // nothing follows the backslash
export const REGEX_NOTHING_TO_REPEAT: i32 = -116 // a quantifier has nothing to repeat
export const REGEX_NESTED_QUANTIFIER: i32 = -117 // a quantifier follows a quantifier
export const REGEX_BAD_REPEAT: i32 = -118 // a repetition count is above 1000, or the lower one exceeds the upper
export const REGEX_BAD_GROUP: i32 = -119 // unknown group syntax
export const REGEX_UNKNOWN_CLASS: i32 = -120 // unknown character class name
export const REGEX_LOOKAROUND: i32 = -130 // look-around is not supported: it cannot be matched in linear time
export const REGEX_BACKREFERENCE: i32 = -131 // back-references are not supported: no linear-time match exists
export const REGEX_ATOMIC: i32 = -132 // atomic groups and possessive quantifiers are not supported

// --- codes: lists of words; last_error_offset is the byte of the word that is to blame ---------------
// Hosts of every language show these comments, too.
export const WORDS_TOO_MANY: i32 = -140 // a list has more than 10,000 words
export const WORDS_TOO_LARGE: i32 = -141 // a list of words is longer than 262,144 bytes
export const WORDS_LONG_WORD: i32 = -142 // a word is longer than 256 bytes
export const WORDS_BAD_UTF8: i32 = -143 // a word is not valid UTF-8

// --- codes: tokens ------------------------------------------------------------------------------
export const TOKENS_BAD_VOCABULARY: i32 = -201 // not a vocabulary file of this version

// --- flags of regex_compile: as if the pattern began with (?i), (?m), (?s), (?U) ---------------------
export const REGEX_CASE_INSENSITIVE: i32 = 1
export const REGEX_MULTI_LINE: i32 = 2
export const REGEX_DOT_ALL: i32 = 4
export const REGEX_SWAP_GREED: i32 = 8
export const REGEX_MATCH_ONLY: i32 = 16 // for calls that return no spans; needs half the memory

// --- builtins of mask_add_builtin --------------------------------------------------------------------
export const DETECT_SSN: i32 = 0 // social security numbers of the USA
export const DETECT_CARD: i32 = 1 // payment cards, with their check digit
export const DETECT_PHONE: i32 = 2 // international and North American telephone numbers
export const DETECT_EMAIL: i32 = 3 // email addresses
export const DETECT_SIN: i32 = 4 // social insurance numbers of Canada, with their check digit
export const DETECT_IBAN: i32 = 5 // international bank account numbers, with their check digits
export const DETECT_IP: i32 = 6 // IP addresses of both versions
export const DETECT_API_KEY: i32 = 7 // API keys and tokens with the prefix of their issuer, and JSON web tokens
export const DETECT_PRIVATE_KEY: i32 = 8 // private keys in PEM, and of age
export const DETECT_VAT: i32 = 9 // VAT numbers of 14 countries, with their check digits
export const DETECT_TAX_ID: i32 = 10 // tax ids of Germany, with their check digit
export const DETECT_NIR: i32 = 11 // social security numbers of France, with their check digits
export const DETECT_NIF: i32 = 12 // DNI and NIE of Spain, with their check letter
export const DETECT_FISCAL_CODE: i32 = 13 // codici fiscali of Italy, with their check letter
export const DETECT_BSN: i32 = 14 // citizen service numbers of the Netherlands, with their check digit
export const DETECT_PESEL: i32 = 15 // national ids of Poland, with their check digit
export const DETECT_PERSONNUMMER: i32 = 16 // personal identity numbers of Sweden, with their check digit
export const DETECT_NINO: i32 = 17 // national insurance numbers of the United Kingdom
export const DETECT_NHS: i32 = 18 // NHS numbers of the United Kingdom, with their check digit
export const DETECT_AADHAAR: i32 = 19 // Aadhaar numbers of India, with their check digit
export const DETECT_CPF: i32 = 20 // tax ids of people in Brazil, with their check digits
export const DETECT_CNPJ: i32 = 21 // tax ids of companies in Brazil, with their check digits
export const DETECT_SECRET: i32 = 22 // random tokens, and shorter ones after a word such as key or password

// --- codes: rate buckets ----------------------------------------------------------------------------
export const RATE_FULL: i32 = -301 // every cell of the key's group is in use: make a larger table
export const RATE_BUSY: i32 = -302 // another thread holds the key's group or has just grown the memory; call again
export const RATE_GONE: i32 = -303 // the cell is another's now: ask rate_cell again

// --- codes: heads and bodies: -(status * 100 + reason). Reasons are unique; a response that is
// refused has 502 as its status and the same reason: ERROR_RESPONSE - reason.
export const BAD_METHOD: i32 = -40001 // the method is not a token
export const BAD_TARGET: i32 = -40002 // the request target has a forbidden byte or form
export const BAD_VERSION: i32 = -40003 // not HTTP/digit.digit
export const BAD_LINE_END: i32 = -40004 // CR without LF, LF without CR
export const BAD_FIELD_NAME: i32 = -40005 // empty, not a token, or white space before the colon
export const BAD_FIELD_VALUE: i32 = -40006 // a control character, NUL, bare CR or bare LF
export const OBSOLETE_FOLD: i32 = -40007 // a line that begins with white space
export const DUPLICATE_CONTENT_LENGTH: i32 = -40008 // repeated, even with one value
export const BAD_CONTENT_LENGTH: i32 = -40009 // listed, signed, spaced, empty, not decimal, or 2^53 and up
export const BAD_TRANSFER_ENCODING: i32 = -40010 // anything but `chunked`, once
export const AMBIGUOUS_LENGTH: i32 = -40011 // transfer-encoding and content-length together
export const TRANSFER_ENCODING_ON_HTTP_10: i32 = -40012 // chunked does not exist in HTTP/1.0
export const MISSING_HOST: i32 = -40013 // HTTP/1.1 without Host
export const DUPLICATE_HOST: i32 = -40014 // Host repeated
export const BAD_HOST: i32 = -40015 // not host[:port], or longer than 255 bytes
export const BAD_CONNECTION: i32 = -40016 // nominates a field that must reach the upstream, or too many
export const BAD_CHUNK_SIZE: i32 = -40017 // not 1 to 8 hexadecimal digits below 2^31
export const BAD_CHUNK_EXTENSION: i32 = -40018 // a control character, or more than 16 KiB a body
export const BAD_CHUNK_END: i32 = -40019 // chunk data not followed by CRLF
export const BAD_TRAILER: i32 = -40020 // a malformed trailer field or a field that trailers may not carry
export const BAD_STATUS: i32 = -40021 // a response's status line is malformed
export const TARGET_TOO_LONG: i32 = -41430 // the head limit was reached inside the request line
export const HEAD_TOO_LARGE: i32 = -43131 // more bytes than the caller allows
export const TOO_MANY_FIELDS: i32 = -43132 // more fields than the record holds
export const TRAILERS_TOO_LARGE: i32 = -43133 // more trailer bytes than the caller allows
export const METHOD_TOO_LONG: i32 = -50140 // longer than 32 bytes
export const VERSION_UNSUPPORTED: i32 = -50541 // HTTP, but neither 1.0 nor 1.1
export const HTTP2_PREFACE: i32 = -50542 // `PRI * HTTP/2.0`: a host that supports HTTP/2 switches to it
export const ERROR_RESPONSE: i32 = -50200 // malformed response: ERROR_RESPONSE - reason

// --- head record -----------------------------------------------------------------------------------
//
// Spans are addresses, start and end; -1 -1 if the part is absent. All fields are i32 but one.
//
//      +0  END       +4  RESUME    +8  STATUS    +12 MINOR
//      +16 METHOD  s e             +24 TARGET  s e
//      +32 PATH    s e             +40 QUERY   s e
//      +48 AUTHORITY s e           +56 HOST    s e
//      +64 CONTENT_LENGTH (f64)    +72 FLAGS     +76 PORT
//      +80 UPGRADE s e             +88 REASON  s e
//      +96 METHOD_ID +100 SCHEME   +104 HOST_FIELD   +108 HOP_COUNT
//      +112 SCOPE    +116 ROUTE    +120 FIELD_LIMIT  +124 FIELD_COUNT
//      +128 fields: NAME s e, VALUE s e, INFO: 20 bytes each, in order of arrival
//
export const HEAD_END: i32 = 0 // address of the first byte after the head
export const HEAD_RESUME: i32 = 4 // after INCOMPLETE: bytes that need no second look; pass it back in
export const HEAD_STATUS: i32 = 8 // of a response, 100 to 999; 0 in a request
export const HEAD_MINOR: i32 = 12 // of HTTP/1.x: 0 or 1
export const HEAD_METHOD: i32 = 16 // span
export const HEAD_TARGET: i32 = 24 // span, as received
export const HEAD_PATH: i32 = 32 // span without query; empty for CONNECT and `http://host`; `*` in asterisk-form
export const HEAD_QUERY: i32 = 40 // span after `?`; absent without one
export const HEAD_AUTHORITY: i32 = 48 // span, host[:port]: of the absolute-form target, else of Host
export const HEAD_HOST: i32 = 56 // span of the authority without port and closing dot; IPv6 keeps its brackets
export const HEAD_CONTENT_LENGTH: i32 = 64 // f64; -1 when absent
export const HEAD_FLAGS: i32 = 72 // bits FLAG_*
export const HEAD_PORT: i32 = 76 // of the authority; -1 when absent
export const HEAD_UPGRADE: i32 = 80 // span of the Upgrade value, only when Connection asks for it
export const HEAD_REASON: i32 = 88 // span of a response's reason phrase, possibly empty
export const HEAD_METHOD_ID: i32 = 96 // METHOD_*; 0 for any other
export const HEAD_SCHEME: i32 = 100 // of an absolute-form target: SCHEME_*; 0 otherwise
export const HEAD_HOST_FIELD: i32 = 104 // index of the Host field; -1 when absent
export const HEAD_HOP_COUNT: i32 = 108 // how many fields have INFO_HOP
export const HEAD_SCOPE: i32 = 112 // set by route_match: the listener's scope; -1
export const HEAD_ROUTE: i32 = 116 // set by route_match: the route's id; -1
export const HEAD_FIELD_LIMIT: i32 = 120 // fields the record has room for; set once by the host
export const HEAD_FIELD_COUNT: i32 = 124 // fields present
export const HEAD_FIELDS: i32 = 128 // the first field
export const HEAD_SIZE: i32 = 128 // bytes of a record without fields
export const FIELD_SIZE: i32 = 20 // bytes of one field
export const FIELD_NAME: i32 = 0 // span
export const FIELD_VALUE: i32 = 8 // span without the white space around it
export const FIELD_INFO: i32 = 16 // bits INFO_*, and in the low 8 bits the known name NAME_*

export const FLAG_CHUNKED: i32 = 1 // transfer-encoding: chunked
export const FLAG_PERSISTENT: i32 = 2 // the connection may carry another message (version and Connection)
export const FLAG_CLOSE: i32 = 4 // Connection lists close
export const FLAG_KEEP_ALIVE: i32 = 8 // Connection lists keep-alive
export const FLAG_UPGRADE: i32 = 16 // HTTP/1.1, Connection lists upgrade, and there is an Upgrade field
export const FLAG_EXPECT_CONTINUE: i32 = 32 // Expect: 100-continue on HTTP/1.1
export const FLAG_EXPECT_OTHER: i32 = 64 // any other expectation
export const FLAG_TE_TRAILERS: i32 = 128 // TE lists trailers
export const FLAG_ABSOLUTE_FORM: i32 = 256 // target is http(s)://authority/path; it wins over Host
export const FLAG_ASTERISK_FORM: i32 = 512 // OPTIONS *
export const FLAG_AUTHORITY_FORM: i32 = 1024 // CONNECT host:port

export const INFO_HOP: i32 = 256 // hop-by-hop: remove when forwarding (RFC 9110 7.6.1)

export const NAME_OTHER: i32 = 0
export const NAME_HOST: i32 = 1
export const NAME_CONTENT_LENGTH: i32 = 2
export const NAME_TRANSFER_ENCODING: i32 = 3
export const NAME_CONNECTION: i32 = 4
export const NAME_KEEP_ALIVE: i32 = 5
export const NAME_PROXY_CONNECTION: i32 = 6
export const NAME_TE: i32 = 7
export const NAME_TRAILER: i32 = 8
export const NAME_UPGRADE: i32 = 9
export const NAME_PROXY_AUTHENTICATE: i32 = 10
export const NAME_EXPECT: i32 = 11

export const METHOD_OTHER: i32 = 0
export const METHOD_GET: i32 = 1
export const METHOD_HEAD: i32 = 2
export const METHOD_POST: i32 = 3
export const METHOD_PUT: i32 = 4
export const METHOD_DELETE: i32 = 5
export const METHOD_CONNECT: i32 = 6
export const METHOD_OPTIONS: i32 = 7
export const METHOD_TRACE: i32 = 8
export const METHOD_PATCH: i32 = 9

export const SCHEME_HTTP: i32 = 1
export const SCHEME_HTTPS: i32 = 2

export const METHOD_LIMIT: i32 = 32 // bytes of the longest method
export const HOST_LIMIT: i32 = 255 // bytes of the longest authority
export const NOMINATION_LIMIT: i32 = 32 // names that Connection fields may nominate beyond the known ones

// --- chunked body record ---------------------------------------------------------------------------
//
//      +0  PHASE     +4  REMAINING +8  DIGITS    +12 EXTENSION_BYTES
//      +16 TRAILER_BYTES  +20 TRAILER_LIMIT      +24 FLAGS   +28 SPAN_COUNT
//      +32 TRAILER s e             +40 CONSUMED  +44 unused
//      +48 spans of chunk data of this call: s e, at most 32
//
export const BODY_PHASE: i32 = 0 // private; 0 at the start of a body
export const BODY_REMAINING: i32 = 4 // private; bytes left of the current chunk
export const BODY_DIGITS: i32 = 8 // private; digits of the current size
export const BODY_EXTENSION_BYTES: i32 = 12 // extension bytes seen in this body
export const BODY_TRAILER_BYTES: i32 = 16 // trailer bytes seen in this body
export const BODY_TRAILER_LIMIT: i32 = 20 // set by chunks_start
export const BODY_FLAGS: i32 = 24 // bits BODY_HAS_*
export const BODY_SPAN_COUNT: i32 = 28 // data spans of the last call
export const BODY_TRAILER: i32 = 32 // span: what the last call saw of the trailer fields, without the empty line
export const BODY_CONSUMED: i32 = 40 // address after the last byte that the last call took
export const BODY_SPANS: i32 = 48 // the first data span
export const BODY_SPAN_LIMIT: i32 = 32 // data spans a call reports at most
export const BODY_SIZE: i32 = 304 // bytes of the record
export const BODY_HAS_EXTENSIONS: i32 = 1 // raw bytes may not be forwarded: extensions are dropped
export const BODY_HAS_TRAILERS: i32 = 2 // at least one trailer field
export const CHUNKS_MORE: i32 = 0 // all bytes taken, more of the body follows
export const CHUNKS_END: i32 = 1 // the body is complete at BODY_CONSUMED
export const CHUNKS_AGAIN: i32 = 2 // the span list is full; call again from BODY_CONSUMED
export const EXTENSION_LIMIT: i32 = 16384 // bytes of chunk extensions a body may carry

// --- route specification: what route_add reads; all fields i32 but one, offsets relative to it -----
//
//      +0  ID          +4  SCOPE        +8  HOST_KIND    +12 HOST offset, +16 length
//      +20 PATH_KIND   +24 PATH offset, +28 length       +32 CREATED (f64)
//      +40 PATH_REGEX  +44 NAME offset, +48 length       +52 RULE       +56 MATCH
//      +60 METHOD offset, +64 length    +68 FIELD_COUNT  +72 QUERY_COUNT   +76 unused
//      +80 predicates, fields first: KIND, NAME offset, length, VALUE offset, length, REGEX: 24 bytes
//      then the bytes
//
export const ROUTE_ID: i32 = 0 // chosen by the host, >= 0, unique in the table
export const ROUTE_SCOPE: i32 = 4 // the listener's scope, chosen by the host, >= 0
export const ROUTE_HOST_KIND: i32 = 8 // HOST_*
export const ROUTE_HOST: i32 = 12 // wildcard: the bytes after `*`, with the dot
export const ROUTE_PATH_KIND: i32 = 20 // PATH_*
export const ROUTE_PATH: i32 = 24 // exact and prefix: begins with `/`; regex: its source (for its length)
export const ROUTE_CREATED: i32 = 32 // f64: creation time in ms; older wins
export const ROUTE_PATH_REGEX: i32 = 40 // a regex handle
export const ROUTE_NAME: i32 = 44 // `namespace/name`; the smaller bytes win
export const ROUTE_RULE: i32 = 52 // index of the rule in its route
export const ROUTE_MATCH: i32 = 56 // index of the match in its rule
export const ROUTE_METHOD: i32 = 60 // length 0: any
export const ROUTE_FIELD_COUNT: i32 = 68 // header predicates
export const ROUTE_QUERY_COUNT: i32 = 72 // query predicates
export const ROUTE_PREDICATES: i32 = 80 // the first predicate
export const PREDICATE_SIZE: i32 = 24 // bytes of one predicate
export const PREDICATE_KIND: i32 = 0 // PREDICATE_*
export const PREDICATE_NAME: i32 = 4 // header names: any case; `:method`, `:path` and `:authority` too
export const PREDICATE_VALUE: i32 = 12 // bytes for PREDICATE_EXACT
export const PREDICATE_REGEX: i32 = 20 // a regex handle for PREDICATE_PATTERN
export const PREDICATE_EXACT: i32 = 0
export const PREDICATE_PATTERN: i32 = 1
export const HOST_ANY: i32 = 0 // no hostname
export const HOST_EXACT: i32 = 1
export const HOST_WILDCARD: i32 = 2 // one or more labels before the bytes given
export const PATH_EXACT: i32 = 0
export const PATH_PREFIX: i32 = 1 // by whole segments; trailing slashes are ignored
export const PATH_REGEX: i32 = 2 // must cover the whole path
export const PREDICATE_LIMIT: i32 = 64 // predicates of one kind in a route

// --- rate record: what rate_take, rate_peek and rate_charge write; f64 -------------------------------
//
//      +0  WAIT      +8  REMAINING      +16 RESET
//
export const RATE_WAIT: i32 = 0 // ms until the amount would be admitted; 0 when it is; Infinity above the capacity
export const RATE_REMAINING: i32 = 8 // whole units left; negative in debt
export const RATE_RESET: i32 = 16 // ms until the bucket is full
export const RATE_SIZE: i32 = 24 // bytes of the record
