// Code generated from assembly/ by npm run generate; DO NOT EDIT.

// Package abi has the constants of the WebAssembly modules.
package abi

const (
	AbiVersion               = 1
	FeatureHead              = 1
	FeatureRoutes            = 2
	FeatureRegex             = 4
	FeatureTokens            = 16
	FeatureRate              = 32
	FeatureTexts             = 64
	Incomplete               = -1
	ErrorMemory              = -2
	ErrorArgument            = -3
	ErrorDuplicate           = -4
	ErrorUnknown             = -5
	NoListener               = -6
	NoRoute                  = -7
	RegexPatternTooLong      = -102
	RegexProgramTooLarge     = -103
	RegexNestedTooDeep       = -104
	RegexNoSpans             = -105
	RegexTooMuchWork         = -106
	RegexBadUtf8             = -110
	RegexUnbalancedParen     = -111
	RegexUnclosedClass       = -112
	RegexBadRange            = -113
	RegexBadEscape           = -114
	RegexTrailingBackslash   = -115
	RegexNothingToRepeat     = -116
	RegexNestedQuantifier    = -117
	RegexBadRepeat           = -118
	RegexBadGroup            = -119
	RegexUnknownClass        = -120
	RegexLookaround          = -130
	RegexBackreference       = -131
	RegexAtomic              = -132
	WordsTooMany             = -140
	WordsTooLarge            = -141
	WordsLongWord            = -142
	WordsBadUtf8             = -143
	TokensBadVocabulary      = -201
	RegexCaseInsensitive     = 1
	RegexMultiLine           = 2
	RegexDotAll              = 4
	RegexSwapGreed           = 8
	RegexMatchOnly           = 16
	DetectSsn                = 0
	DetectCard               = 1
	DetectPhone              = 2
	DetectEmail              = 3
	DetectSin                = 4
	DetectIban               = 5
	DetectIp                 = 6
	DetectApiKey             = 7
	DetectPrivateKey         = 8
	DetectVat                = 9
	DetectTaxId              = 10
	DetectNir                = 11
	DetectNif                = 12
	DetectFiscalCode         = 13
	DetectBsn                = 14
	DetectPesel              = 15
	DetectPersonnummer       = 16
	DetectNino               = 17
	DetectNhs                = 18
	DetectAadhaar            = 19
	DetectCpf                = 20
	DetectCnpj               = 21
	DetectSecret             = 22
	RateFull                 = -301
	RateBusy                 = -302
	RateGone                 = -303
	BadMethod                = -40001
	BadTarget                = -40002
	BadVersion               = -40003
	BadLineEnd               = -40004
	BadFieldName             = -40005
	BadFieldValue            = -40006
	ObsoleteFold             = -40007
	DuplicateContentLength   = -40008
	BadContentLength         = -40009
	BadTransferEncoding      = -40010
	AmbiguousLength          = -40011
	TransferEncodingOnHttp10 = -40012
	MissingHost              = -40013
	DuplicateHost            = -40014
	BadHost                  = -40015
	BadConnection            = -40016
	BadChunkSize             = -40017
	BadChunkExtension        = -40018
	BadChunkEnd              = -40019
	BadTrailer               = -40020
	BadStatus                = -40021
	TargetTooLong            = -41430
	HeadTooLarge             = -43131
	TooManyFields            = -43132
	TrailersTooLarge         = -43133
	MethodTooLong            = -50140
	VersionUnsupported       = -50541
	Http2Preface             = -50542
	ErrorResponse            = -50200
	HeadEnd                  = 0
	HeadResume               = 4
	HeadStatus               = 8
	HeadMinor                = 12
	HeadMethod               = 16
	HeadTarget               = 24
	HeadPath                 = 32
	HeadQuery                = 40
	HeadAuthority            = 48
	HeadHost                 = 56
	HeadContentLength        = 64
	HeadFlags                = 72
	HeadPort                 = 76
	HeadUpgrade              = 80
	HeadReason               = 88
	HeadMethodId             = 96
	HeadScheme               = 100
	HeadHostField            = 104
	HeadHopCount             = 108
	HeadScope                = 112
	HeadRoute                = 116
	HeadFieldLimit           = 120
	HeadFieldCount           = 124
	HeadFields               = 128
	HeadSize                 = 128
	FieldSize                = 20
	FieldName                = 0
	FieldValue               = 8
	FieldInfo                = 16
	FlagChunked              = 1
	FlagPersistent           = 2
	FlagClose                = 4
	FlagKeepAlive            = 8
	FlagUpgrade              = 16
	FlagExpectContinue       = 32
	FlagExpectOther          = 64
	FlagTeTrailers           = 128
	FlagAbsoluteForm         = 256
	FlagAsteriskForm         = 512
	FlagAuthorityForm        = 1024
	InfoHop                  = 256
	NameOther                = 0
	NameHost                 = 1
	NameContentLength        = 2
	NameTransferEncoding     = 3
	NameConnection           = 4
	NameKeepAlive            = 5
	NameProxyConnection      = 6
	NameTe                   = 7
	NameTrailer              = 8
	NameUpgrade              = 9
	NameProxyAuthenticate    = 10
	NameExpect               = 11
	MethodOther              = 0
	MethodGet                = 1
	MethodHead               = 2
	MethodPost               = 3
	MethodPut                = 4
	MethodDelete             = 5
	MethodConnect            = 6
	MethodOptions            = 7
	MethodTrace              = 8
	MethodPatch              = 9
	SchemeHttp               = 1
	SchemeHttps              = 2
	MethodLimit              = 32
	HostLimit                = 255
	NominationLimit          = 32
	BodyPhase                = 0
	BodyRemaining            = 4
	BodyDigits               = 8
	BodyExtensionBytes       = 12
	BodyTrailerBytes         = 16
	BodyTrailerLimit         = 20
	BodyFlags                = 24
	BodySpanCount            = 28
	BodyTrailer              = 32
	BodyConsumed             = 40
	BodySpans                = 48
	BodySpanLimit            = 32
	BodySize                 = 304
	BodyHasExtensions        = 1
	BodyHasTrailers          = 2
	ChunksMore               = 0
	ChunksEnd                = 1
	ChunksAgain              = 2
	ExtensionLimit           = 16384
	RouteId                  = 0
	RouteScope               = 4
	RouteHostKind            = 8
	RouteHost                = 12
	RoutePathKind            = 20
	RoutePath                = 24
	RouteCreated             = 32
	RoutePathRegex           = 40
	RouteName                = 44
	RouteRule                = 52
	RouteMatch               = 56
	RouteMethod              = 60
	RouteFieldCount          = 68
	RouteQueryCount          = 72
	RoutePredicates          = 80
	PredicateSize            = 24
	PredicateKind            = 0
	PredicateName            = 4
	PredicateValue           = 12
	PredicateRegex           = 20
	PredicateExact           = 0
	PredicatePattern         = 1
	HostAny                  = 0
	HostExact                = 1
	HostWildcard             = 2
	PathExact                = 0
	PathPrefix               = 1
	PathRegex                = 2
	PredicateLimit           = 64
	RateWait                 = 0
	RateRemaining            = 8
	RateReset                = 16
	RateSize                 = 24
	RegexSyntaxFlags         = 15
	RegexAllFlags            = 31
	MaxPatternBytes          = 8192
	MaxNesting               = 200
	MaxRepeat                = 1000
	MaxInstructions          = 32768
	MaxCompileSteps          = 262144
	CacheBytes               = 65520
	MaxCaches                = 16
	ReadsLimit               = 256
	ReadsFree                = 4194304
	TextsMalformed           = -401
	TextsTooDeep             = -402
	TextsTooLarge            = -403
	TextsHidden              = -404
	TextsNotText             = -405
	TextsUndecided           = -406
	TextsTooMany             = -407
	TextsOtherFormat         = -408
	TextsOver                = -409
	TextsCompletions         = 1
	TextsMessages            = 2
	TextsResponses           = 3
	TextsEmbeddings          = 4
	TextsTokenCount          = 5
	TextsRequest             = 1
	TextsAnswer              = 2
	TextsStream              = 3
	TextsError               = 4
	TextsInputTokens         = 0
	TextsOutputTokens        = 8
	TextsCachedTokens        = 16
	TextsBytes               = 24
	TextsUncounted           = 32
	TextsFlags               = 40
	TextsRejected            = 44
	TextsModel               = 48
	TextsRecordSize          = 56
	TextsHasInput            = 1
	TextsHasOutput           = 2
	TextsIsStream            = 4
)

// CodeName returns the name of an error code, or "".
func CodeName(code int32) string {
	switch code {
	case Incomplete:
		return "INCOMPLETE"
	case ErrorMemory:
		return "ERROR_MEMORY"
	case ErrorArgument:
		return "ERROR_ARGUMENT"
	case ErrorDuplicate:
		return "ERROR_DUPLICATE"
	case ErrorUnknown:
		return "ERROR_UNKNOWN"
	case NoListener:
		return "NO_LISTENER"
	case NoRoute:
		return "NO_ROUTE"
	case RegexPatternTooLong:
		return "REGEX_PATTERN_TOO_LONG"
	case RegexProgramTooLarge:
		return "REGEX_PROGRAM_TOO_LARGE"
	case RegexNestedTooDeep:
		return "REGEX_NESTED_TOO_DEEP"
	case RegexNoSpans:
		return "REGEX_NO_SPANS"
	case RegexTooMuchWork:
		return "REGEX_TOO_MUCH_WORK"
	case RegexBadUtf8:
		return "REGEX_BAD_UTF8"
	case RegexUnbalancedParen:
		return "REGEX_UNBALANCED_PAREN"
	case RegexUnclosedClass:
		return "REGEX_UNCLOSED_CLASS"
	case RegexBadRange:
		return "REGEX_BAD_RANGE"
	case RegexBadEscape:
		return "REGEX_BAD_ESCAPE"
	case RegexTrailingBackslash:
		return "REGEX_TRAILING_BACKSLASH"
	case RegexNothingToRepeat:
		return "REGEX_NOTHING_TO_REPEAT"
	case RegexNestedQuantifier:
		return "REGEX_NESTED_QUANTIFIER"
	case RegexBadRepeat:
		return "REGEX_BAD_REPEAT"
	case RegexBadGroup:
		return "REGEX_BAD_GROUP"
	case RegexUnknownClass:
		return "REGEX_UNKNOWN_CLASS"
	case RegexLookaround:
		return "REGEX_LOOKAROUND"
	case RegexBackreference:
		return "REGEX_BACKREFERENCE"
	case RegexAtomic:
		return "REGEX_ATOMIC"
	case WordsTooMany:
		return "WORDS_TOO_MANY"
	case WordsTooLarge:
		return "WORDS_TOO_LARGE"
	case WordsLongWord:
		return "WORDS_LONG_WORD"
	case WordsBadUtf8:
		return "WORDS_BAD_UTF8"
	case TokensBadVocabulary:
		return "TOKENS_BAD_VOCABULARY"
	case RateFull:
		return "RATE_FULL"
	case RateBusy:
		return "RATE_BUSY"
	case RateGone:
		return "RATE_GONE"
	case BadMethod:
		return "BAD_METHOD"
	case BadTarget:
		return "BAD_TARGET"
	case BadVersion:
		return "BAD_VERSION"
	case BadLineEnd:
		return "BAD_LINE_END"
	case BadFieldName:
		return "BAD_FIELD_NAME"
	case BadFieldValue:
		return "BAD_FIELD_VALUE"
	case ObsoleteFold:
		return "OBSOLETE_FOLD"
	case DuplicateContentLength:
		return "DUPLICATE_CONTENT_LENGTH"
	case BadContentLength:
		return "BAD_CONTENT_LENGTH"
	case BadTransferEncoding:
		return "BAD_TRANSFER_ENCODING"
	case AmbiguousLength:
		return "AMBIGUOUS_LENGTH"
	case TransferEncodingOnHttp10:
		return "TRANSFER_ENCODING_ON_HTTP_10"
	case MissingHost:
		return "MISSING_HOST"
	case DuplicateHost:
		return "DUPLICATE_HOST"
	case BadHost:
		return "BAD_HOST"
	case BadConnection:
		return "BAD_CONNECTION"
	case BadChunkSize:
		return "BAD_CHUNK_SIZE"
	case BadChunkExtension:
		return "BAD_CHUNK_EXTENSION"
	case BadChunkEnd:
		return "BAD_CHUNK_END"
	case BadTrailer:
		return "BAD_TRAILER"
	case BadStatus:
		return "BAD_STATUS"
	case TargetTooLong:
		return "TARGET_TOO_LONG"
	case HeadTooLarge:
		return "HEAD_TOO_LARGE"
	case TooManyFields:
		return "TOO_MANY_FIELDS"
	case TrailersTooLarge:
		return "TRAILERS_TOO_LARGE"
	case MethodTooLong:
		return "METHOD_TOO_LONG"
	case VersionUnsupported:
		return "VERSION_UNSUPPORTED"
	case Http2Preface:
		return "HTTP2_PREFACE"
	case ErrorResponse:
		return "ERROR_RESPONSE"
	case TextsMalformed:
		return "TEXTS_MALFORMED"
	case TextsTooDeep:
		return "TEXTS_TOO_DEEP"
	case TextsTooLarge:
		return "TEXTS_TOO_LARGE"
	case TextsHidden:
		return "TEXTS_HIDDEN"
	case TextsNotText:
		return "TEXTS_NOT_TEXT"
	case TextsUndecided:
		return "TEXTS_UNDECIDED"
	case TextsTooMany:
		return "TEXTS_TOO_MANY"
	case TextsOtherFormat:
		return "TEXTS_OTHER_FORMAT"
	case TextsOver:
		return "TEXTS_OVER"
	}
	return ""
}

// PatternMessage says what is wrong with a pattern. It returns "" for a code that is not about patterns.
func PatternMessage(code int32) string {
	switch code {
	case RegexPatternTooLong:
		return "the pattern is longer than 8192 bytes"
	case RegexProgramTooLarge:
		return "the pattern is too large once its repetitions are written out"
	case RegexNestedTooDeep:
		return "groups nest deeper than 200"
	case RegexNoSpans:
		return "a pattern that was compiled with REGEX_MATCH_ONLY gives no spans"
	case RegexTooMuchWork:
		return "finding all matches reads the text too many times"
	case RegexBadUtf8:
		return "the pattern is not valid UTF-8"
	case RegexUnbalancedParen:
		return "a parenthesis has no partner"
	case RegexUnclosedClass:
		return "a character class has no closing bracket"
	case RegexBadRange:
		return "a range in a character class runs backwards or ends in a class"
	case RegexBadEscape:
		return "unknown escape"
	case RegexTrailingBackslash:
		return "nothing follows the backslash"
	case RegexNothingToRepeat:
		return "a quantifier has nothing to repeat"
	case RegexNestedQuantifier:
		return "a quantifier follows a quantifier"
	case RegexBadRepeat:
		return "a repetition count is above 1000, or the lower one exceeds the upper"
	case RegexBadGroup:
		return "unknown group syntax"
	case RegexUnknownClass:
		return "unknown character class name"
	case RegexLookaround:
		return "look-around is not supported: it cannot be matched in linear time"
	case RegexBackreference:
		return "back-references are not supported: no linear-time match exists"
	case RegexAtomic:
		return "atomic groups and possessive quantifiers are not supported"
	case WordsTooMany:
		return "a list has more than 10,000 words"
	case WordsTooLarge:
		return "a list of words is longer than 262,144 bytes"
	case WordsLongWord:
		return "a word is longer than 256 bytes"
	case WordsBadUtf8:
		return "a word is not valid UTF-8"
	}
	return ""
}
