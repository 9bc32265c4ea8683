// Generated from assembly/ by npm run generate; do not edit.
/** raised by every incompatible change */
export const ABI_VERSION = 1
/** HTTP/1.1 head reader and chunked scanner */
export const FEATURE_HEAD = 1
/** route tables */
export const FEATURE_ROUTES = 2
/** regular expressions */
export const FEATURE_REGEX = 4
/** token counts; vocabularies are loaded */
export const FEATURE_TOKENS = 16
/** rate buckets */
export const FEATURE_RATE = 32
/** texts of requests to models and of their answers */
export const FEATURE_TEXTS = 64
/** the bytes end before the message part does; call again with more */
export const INCOMPLETE = -1
/** memory is sealed or exhausted; nothing was changed */
export const ERROR_MEMORY = -2
/** a handle, span or record that cannot be */
export const ERROR_ARGUMENT = -3
/** the id or the listener hostname is taken */
export const ERROR_DUPLICATE = -4
/** no such id or listener */
export const ERROR_UNKNOWN = -5
/** no listener takes this hostname */
export const NO_LISTENER = -6
/** the listener has no route for this request */
export const NO_ROUTE = -7
/** the pattern is longer than 8192 bytes */
export const REGEX_PATTERN_TOO_LONG = -102
/** the pattern is too large once its repetitions are written out */
export const REGEX_PROGRAM_TOO_LARGE = -103
/** groups nest deeper than 200 */
export const REGEX_NESTED_TOO_DEEP = -104
/** a pattern that was compiled with REGEX_MATCH_ONLY gives no spans */
export const REGEX_NO_SPANS = -105
/** finding all matches reads the text too many times */
export const REGEX_TOO_MUCH_WORK = -106
/** the pattern is not valid UTF-8 */
export const REGEX_BAD_UTF8 = -110
/** a parenthesis has no partner */
export const REGEX_UNBALANCED_PAREN = -111
/** a character class has no closing bracket */
export const REGEX_UNCLOSED_CLASS = -112
/** a range in a character class runs backwards or ends in a class */
export const REGEX_BAD_RANGE = -113
/** unknown escape */
export const REGEX_BAD_ESCAPE = -114
/** nothing follows the backslash */
export const REGEX_TRAILING_BACKSLASH = -115
/** a quantifier has nothing to repeat */
export const REGEX_NOTHING_TO_REPEAT = -116
/** a quantifier follows a quantifier */
export const REGEX_NESTED_QUANTIFIER = -117
/** a repetition count is above 1000, or the lower one exceeds the upper */
export const REGEX_BAD_REPEAT = -118
/** unknown group syntax */
export const REGEX_BAD_GROUP = -119
/** unknown character class name */
export const REGEX_UNKNOWN_CLASS = -120
/** look-around is not supported: it cannot be matched in linear time */
export const REGEX_LOOKAROUND = -130
/** back-references are not supported: no linear-time match exists */
export const REGEX_BACKREFERENCE = -131
/** atomic groups and possessive quantifiers are not supported */
export const REGEX_ATOMIC = -132
/** a list has more than 10,000 words */
export const WORDS_TOO_MANY = -140
/** a list of words is longer than 262,144 bytes */
export const WORDS_TOO_LARGE = -141
/** a word is longer than 256 bytes */
export const WORDS_LONG_WORD = -142
/** a word is not valid UTF-8 */
export const WORDS_BAD_UTF8 = -143
/** not a vocabulary file of this version */
export const TOKENS_BAD_VOCABULARY = -201
export const REGEX_CASE_INSENSITIVE = 1
export const REGEX_MULTI_LINE = 2
export const REGEX_DOT_ALL = 4
export const REGEX_SWAP_GREED = 8
/** for calls that return no spans; needs half the memory */
export const REGEX_MATCH_ONLY = 16
/** social security numbers of the USA */
export const DETECT_SSN = 0
/** payment cards, with their check digit */
export const DETECT_CARD = 1
/** international and North American telephone numbers */
export const DETECT_PHONE = 2
/** email addresses */
export const DETECT_EMAIL = 3
/** social insurance numbers of Canada, with their check digit */
export const DETECT_SIN = 4
/** international bank account numbers, with their check digits */
export const DETECT_IBAN = 5
/** IP addresses of both versions */
export const DETECT_IP = 6
/** API keys and tokens with the prefix of their issuer, and JSON web tokens */
export const DETECT_API_KEY = 7
/** private keys in PEM, and of age */
export const DETECT_PRIVATE_KEY = 8
/** VAT numbers of 14 countries, with their check digits */
export const DETECT_VAT = 9
/** tax ids of Germany, with their check digit */
export const DETECT_TAX_ID = 10
/** social security numbers of France, with their check digits */
export const DETECT_NIR = 11
/** DNI and NIE of Spain, with their check letter */
export const DETECT_NIF = 12
/** codici fiscali of Italy, with their check letter */
export const DETECT_FISCAL_CODE = 13
/** citizen service numbers of the Netherlands, with their check digit */
export const DETECT_BSN = 14
/** national ids of Poland, with their check digit */
export const DETECT_PESEL = 15
/** personal identity numbers of Sweden, with their check digit */
export const DETECT_PERSONNUMMER = 16
/** national insurance numbers of the United Kingdom */
export const DETECT_NINO = 17
/** NHS numbers of the United Kingdom, with their check digit */
export const DETECT_NHS = 18
/** Aadhaar numbers of India, with their check digit */
export const DETECT_AADHAAR = 19
/** tax ids of people in Brazil, with their check digits */
export const DETECT_CPF = 20
/** tax ids of companies in Brazil, with their check digits */
export const DETECT_CNPJ = 21
/** random tokens, and shorter ones after a word such as key or password */
export const DETECT_SECRET = 22
/** every cell of the key's group is in use: make a larger table */
export const RATE_FULL = -301
/** another thread holds the key's group or has just grown the memory; call again */
export const RATE_BUSY = -302
/** the cell is another's now: ask rate_cell again */
export const RATE_GONE = -303
/** the method is not a token */
export const BAD_METHOD = -40001
/** the request target has a forbidden byte or form */
export const BAD_TARGET = -40002
/** not HTTP/digit.digit */
export const BAD_VERSION = -40003
/** CR without LF, LF without CR */
export const BAD_LINE_END = -40004
/** empty, not a token, or white space before the colon */
export const BAD_FIELD_NAME = -40005
/** a control character, NUL, bare CR or bare LF */
export const BAD_FIELD_VALUE = -40006
/** a line that begins with white space */
export const OBSOLETE_FOLD = -40007
/** repeated, even with one value */
export const DUPLICATE_CONTENT_LENGTH = -40008
/** listed, signed, spaced, empty, not decimal, or 2^53 and up */
export const BAD_CONTENT_LENGTH = -40009
/** anything but `chunked`, once */
export const BAD_TRANSFER_ENCODING = -40010
/** transfer-encoding and content-length together */
export const AMBIGUOUS_LENGTH = -40011
/** chunked does not exist in HTTP/1.0 */
export const TRANSFER_ENCODING_ON_HTTP_10 = -40012
/** HTTP/1.1 without Host */
export const MISSING_HOST = -40013
/** Host repeated */
export const DUPLICATE_HOST = -40014
/** not host[:port], or longer than 255 bytes */
export const BAD_HOST = -40015
/** nominates a field that must reach the upstream, or too many */
export const BAD_CONNECTION = -40016
/** not 1 to 8 hexadecimal digits below 2^31 */
export const BAD_CHUNK_SIZE = -40017
/** a control character, or more than 16 KiB a body */
export const BAD_CHUNK_EXTENSION = -40018
/** chunk data not followed by CRLF */
export const BAD_CHUNK_END = -40019
/** a malformed trailer field or a field that trailers may not carry */
export const BAD_TRAILER = -40020
/** a response's status line is malformed */
export const BAD_STATUS = -40021
/** the head limit was reached inside the request line */
export const TARGET_TOO_LONG = -41430
/** more bytes than the caller allows */
export const HEAD_TOO_LARGE = -43131
/** more fields than the record holds */
export const TOO_MANY_FIELDS = -43132
/** more trailer bytes than the caller allows */
export const TRAILERS_TOO_LARGE = -43133
/** longer than 32 bytes */
export const METHOD_TOO_LONG = -50140
/** HTTP, but neither 1.0 nor 1.1 */
export const VERSION_UNSUPPORTED = -50541
/** `PRI * HTTP/2.0`: a host that supports HTTP/2 switches to it */
export const HTTP2_PREFACE = -50542
/** malformed response: ERROR_RESPONSE - reason */
export const ERROR_RESPONSE = -50200
/** address of the first byte after the head */
export const HEAD_END = 0
/** after INCOMPLETE: bytes that need no second look; pass it back in */
export const HEAD_RESUME = 4
/** of a response, 100 to 999; 0 in a request */
export const HEAD_STATUS = 8
/** of HTTP/1.x: 0 or 1 */
export const HEAD_MINOR = 12
/** span */
export const HEAD_METHOD = 16
/** span, as received */
export const HEAD_TARGET = 24
/** span without query; empty for CONNECT and `http://host`; `*` in asterisk-form */
export const HEAD_PATH = 32
/** span after `?`; absent without one */
export const HEAD_QUERY = 40
/** span, host[:port]: of the absolute-form target, else of Host */
export const HEAD_AUTHORITY = 48
/** span of the authority without port and closing dot; IPv6 keeps its brackets */
export const HEAD_HOST = 56
/** f64; -1 when absent */
export const HEAD_CONTENT_LENGTH = 64
/** bits FLAG_* */
export const HEAD_FLAGS = 72
/** of the authority; -1 when absent */
export const HEAD_PORT = 76
/** span of the Upgrade value, only when Connection asks for it */
export const HEAD_UPGRADE = 80
/** span of a response's reason phrase, possibly empty */
export const HEAD_REASON = 88
/** METHOD_*; 0 for any other */
export const HEAD_METHOD_ID = 96
/** of an absolute-form target: SCHEME_*; 0 otherwise */
export const HEAD_SCHEME = 100
/** index of the Host field; -1 when absent */
export const HEAD_HOST_FIELD = 104
/** how many fields have INFO_HOP */
export const HEAD_HOP_COUNT = 108
/** set by route_match: the listener's scope; -1 */
export const HEAD_SCOPE = 112
/** set by route_match: the route's id; -1 */
export const HEAD_ROUTE = 116
/** fields the record has room for; set once by the host */
export const HEAD_FIELD_LIMIT = 120
/** fields present */
export const HEAD_FIELD_COUNT = 124
/** the first field */
export const HEAD_FIELDS = 128
/** bytes of a record without fields */
export const HEAD_SIZE = 128
/** bytes of one field */
export const FIELD_SIZE = 20
/** span */
export const FIELD_NAME = 0
/** span without the white space around it */
export const FIELD_VALUE = 8
/** bits INFO_*, and in the low 8 bits the known name NAME_* */
export const FIELD_INFO = 16
/** transfer-encoding: chunked */
export const FLAG_CHUNKED = 1
/** the connection may carry another message (version and Connection) */
export const FLAG_PERSISTENT = 2
/** Connection lists close */
export const FLAG_CLOSE = 4
/** Connection lists keep-alive */
export const FLAG_KEEP_ALIVE = 8
/** HTTP/1.1, Connection lists upgrade, and there is an Upgrade field */
export const FLAG_UPGRADE = 16
/** Expect: 100-continue on HTTP/1.1 */
export const FLAG_EXPECT_CONTINUE = 32
/** any other expectation */
export const FLAG_EXPECT_OTHER = 64
/** TE lists trailers */
export const FLAG_TE_TRAILERS = 128
/** target is http(s)://authority/path; it wins over Host */
export const FLAG_ABSOLUTE_FORM = 256
/** OPTIONS * */
export const FLAG_ASTERISK_FORM = 512
/** CONNECT host:port */
export const FLAG_AUTHORITY_FORM = 1024
/** hop-by-hop: remove when forwarding (RFC 9110 7.6.1) */
export const INFO_HOP = 256
export const NAME_OTHER = 0
export const NAME_HOST = 1
export const NAME_CONTENT_LENGTH = 2
export const NAME_TRANSFER_ENCODING = 3
export const NAME_CONNECTION = 4
export const NAME_KEEP_ALIVE = 5
export const NAME_PROXY_CONNECTION = 6
export const NAME_TE = 7
export const NAME_TRAILER = 8
export const NAME_UPGRADE = 9
export const NAME_PROXY_AUTHENTICATE = 10
export const NAME_EXPECT = 11
export const METHOD_OTHER = 0
export const METHOD_GET = 1
export const METHOD_HEAD = 2
export const METHOD_POST = 3
export const METHOD_PUT = 4
export const METHOD_DELETE = 5
export const METHOD_CONNECT = 6
export const METHOD_OPTIONS = 7
export const METHOD_TRACE = 8
export const METHOD_PATCH = 9
export const SCHEME_HTTP = 1
export const SCHEME_HTTPS = 2
/** bytes of the longest method */
export const METHOD_LIMIT = 32
/** bytes of the longest authority */
export const HOST_LIMIT = 255
/** names that Connection fields may nominate beyond the known ones */
export const NOMINATION_LIMIT = 32
/** private; 0 at the start of a body */
export const BODY_PHASE = 0
/** private; bytes left of the current chunk */
export const BODY_REMAINING = 4
/** private; digits of the current size */
export const BODY_DIGITS = 8
/** extension bytes seen in this body */
export const BODY_EXTENSION_BYTES = 12
/** trailer bytes seen in this body */
export const BODY_TRAILER_BYTES = 16
/** set by chunks_start */
export const BODY_TRAILER_LIMIT = 20
/** bits BODY_HAS_* */
export const BODY_FLAGS = 24
/** data spans of the last call */
export const BODY_SPAN_COUNT = 28
/** span: what the last call saw of the trailer fields, without the empty line */
export const BODY_TRAILER = 32
/** address after the last byte that the last call took */
export const BODY_CONSUMED = 40
/** the first data span */
export const BODY_SPANS = 48
/** data spans a call reports at most */
export const BODY_SPAN_LIMIT = 32
/** bytes of the record */
export const BODY_SIZE = 304
/** raw bytes may not be forwarded: extensions are dropped */
export const BODY_HAS_EXTENSIONS = 1
/** at least one trailer field */
export const BODY_HAS_TRAILERS = 2
/** all bytes taken, more of the body follows */
export const CHUNKS_MORE = 0
/** the body is complete at BODY_CONSUMED */
export const CHUNKS_END = 1
/** the span list is full; call again from BODY_CONSUMED */
export const CHUNKS_AGAIN = 2
/** bytes of chunk extensions a body may carry */
export const EXTENSION_LIMIT = 16384
/** chosen by the host, >= 0, unique in the table */
export const ROUTE_ID = 0
/** the listener's scope, chosen by the host, >= 0 */
export const ROUTE_SCOPE = 4
/** HOST_* */
export const ROUTE_HOST_KIND = 8
/** wildcard: the bytes after `*`, with the dot */
export const ROUTE_HOST = 12
/** PATH_* */
export const ROUTE_PATH_KIND = 20
/** exact and prefix: begins with `/`; regex: its source (for its length) */
export const ROUTE_PATH = 24
/** f64: creation time in ms; older wins */
export const ROUTE_CREATED = 32
/** a regex handle */
export const ROUTE_PATH_REGEX = 40
/** `namespace/name`; the smaller bytes win */
export const ROUTE_NAME = 44
/** index of the rule in its route */
export const ROUTE_RULE = 52
/** index of the match in its rule */
export const ROUTE_MATCH = 56
/** length 0: any */
export const ROUTE_METHOD = 60
/** header predicates */
export const ROUTE_FIELD_COUNT = 68
/** query predicates */
export const ROUTE_QUERY_COUNT = 72
/** the first predicate */
export const ROUTE_PREDICATES = 80
/** bytes of one predicate */
export const PREDICATE_SIZE = 24
/** PREDICATE_* */
export const PREDICATE_KIND = 0
/** header names: any case; `:method`, `:path` and `:authority` too */
export const PREDICATE_NAME = 4
/** bytes for PREDICATE_EXACT */
export const PREDICATE_VALUE = 12
/** a regex handle for PREDICATE_PATTERN */
export const PREDICATE_REGEX = 20
export const PREDICATE_EXACT = 0
export const PREDICATE_PATTERN = 1
/** no hostname */
export const HOST_ANY = 0
export const HOST_EXACT = 1
/** one or more labels before the bytes given */
export const HOST_WILDCARD = 2
export const PATH_EXACT = 0
/** by whole segments; trailing slashes are ignored */
export const PATH_PREFIX = 1
/** must cover the whole path */
export const PATH_REGEX = 2
/** predicates of one kind in a route */
export const PREDICATE_LIMIT = 64
/** ms until the amount would be admitted; 0 when it is; Infinity above the capacity */
export const RATE_WAIT = 0
/** whole units left; negative in debt */
export const RATE_REMAINING = 8
/** ms until the bucket is full */
export const RATE_RESET = 16
/** bytes of the record */
export const RATE_SIZE = 24
export const REGEX_SYNTAX_FLAGS = 15
export const REGEX_ALL_FLAGS = 31
export const MAX_PATTERN_BYTES = 8192
export const MAX_NESTING = 200
export const MAX_REPEAT = 1000
export const MAX_INSTRUCTIONS = 32768
/** Maximum visits of syntax nodes during a compile; bounds nested repetitions of nothing. */
export const MAX_COMPILE_STEPS = 262144
/** Size of a DFA cache (64 KiB with the block's head). A regex without one is simulated, with the same results. */
export const CACHE_BYTES = 65520
export const MAX_CACHES = 16
export const READS_LIMIT = 256
export const READS_FREE = 4194304
