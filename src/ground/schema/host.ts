/** Fields with the host of a server or with a path, into which users often write a whole URL. */
import { type Schema, withRules } from './field.ts'
import { rule } from './rules.ts'
import { shortString } from './strings.ts'

// A name has none of the characters that separate the parts of a URL. IPv6 addresses may have brackets and a zone.
const name = '[^\\s/?#@:\\[\\]\\\\]+'
const address = '[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._~-]+)?'
const host = `(${name}|${address}|\\[${address}\\])`

const hostForm = `^${host}$`
const endpointForm = `^([A-Za-z]+://)?${host}(:[0-9]{1,5})?(/.*)?$`
/** The characters of a path with its query (RFC 3986), as a set of a regular expression. */
export const pathWithQuery = '!$&-;=?-Z_a-z~%'
// Characters of a path (RFC 3986), and escapes.
const pathCharacters = '([!$&-;=@-Z_a-z~]|%[0-9A-Fa-f]{2})'
/** A path without a query. */
export const pathForm = `^/${pathCharacters}*$`
/** What a path with a query cannot have. API servers limit the cost of a rule, which grows with the pattern. */
const noPathCharacter = `[^${pathWithQuery}]|%([^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)`
const scheme = '^[A-Za-z][A-Za-z0-9+.-]*://'

/** A pattern as a CEL string. */
const quoted = (pattern: string): string => `'${pattern.replaceAll('\\', '\\\\')}'`

const matches = (pattern: string): { cel: string; holds: (value: string) => boolean } => {
  const form = new RegExp(pattern)
  return { cel: `self.matches(${quoted(pattern)})`, holds: (value) => form.test(value) }
}

/** A host name or an IP address, beside a field for the port. */
export const hostText: Schema<string> = withRules(
  shortString,
  rule<string>({
    message: 'must be a host name or an address; write host, port and path separately',
    ...matches(hostForm),
    example: divided,
  }),
)

/** A host that may be written as a URL, of which scheme and path are dropped. It may have a port. */
export const endpointText: Schema<string> = withRules(
  shortString,
  rule<string>({
    message: 'must be a host name or an address, or the URL of a server',
    ...matches(endpointForm),
  }),
)

/** The parts of a URL or of `host:port` as fields; undefined if the text is neither. */
function divided(value: string): string | undefined {
  const written = value.trim()
  const url = new RegExp(scheme).test(written) ? written : `none://${written}`
  if (!URL.canParse(url)) return undefined
  const { protocol, hostname, port } = new URL(url)
  const usual = protocol === 'http:' || protocol === 'ws:' ? '80' : '443'
  return hostname === '' ? undefined : `host: ${hostname}, port: ${port || usual}`
}

/** Adds the rules that a path is not a whole URL, and can be sent as it is written. */
export function withoutHost(path: Schema<string>): Schema<string> {
  const isUrl = matches(scheme)
  const isNoPath = matches(noPathCharacter)
  return withRules(
    path,
    rule<string>({
      message: 'must be a path; write the host of a URL separately',
      cel: `!${isUrl.cel}`,
      holds: (value) => !isUrl.holds(value),
      example: pathOf,
    }),
    rule<string>({
      message: 'must have only characters of a path; escape others, such as %20 for a space',
      cel: `!${isNoPath.cel}`,
      holds: (value) => !isNoPath.holds(value),
    }),
  )
}

/** What other paths begin with: a path without a query. */
export function pathPrefixText(path: Schema<string>): Schema<string> {
  return withRules(
    withoutHost(path),
    rule<string>({
      message: "must begin with '/' and have no query",
      cel: `self.startsWith('/') && !self.contains('?')`,
      holds: (value) => value.startsWith('/') && !value.includes('?'),
    }),
  )
}

function pathOf(value: string): string | undefined {
  if (!URL.canParse(value)) return undefined
  const { pathname, search } = new URL(value)
  return `${pathname}${search}`
}
