/** Header schemas of the Gateway API, which routes and policies share. */
import { choice, list, object, optional, required, text } from '../field.ts'
import { plainHeaderName } from '../strings.ts'

/** Gateway API HTTPHeaderFilter value: visible characters, single spaces or tabs between them. */
export const headerValue = text({
  name: 'HTTPHeaderValue',
  min: 1,
  max: 4096,
  pattern: '^[!-~]+([\\t ]?[!-~]+)*$',
  expects: 'visible ASCII characters with single spaces or tabs between them',
})

const httpHeader = object('HTTPHeader', {
  name: required(plainHeaderName, 'Field name; case does not matter.'),
  value: required(headerValue, { doc: 'Field value.', secret: 'header' }),
})

const headersByName = list(httpHeader, { max: 16, unique: { by: ['name'] } })

export const httpHeaderFilter = object('HTTPHeaderFilter', {
  set: optional(headersByName, 'Headers to set. They replace existing values.'),
  add: optional(headersByName, 'Headers to add. Existing values stay.'),
  remove: optional(
    list(text({ max: 256 }), { max: 16, unique: 'value' }),
    'Names of headers that are removed.',
  ),
})

export const matchType = choice('MatchType', {
  Exact: 'the whole value is equal',
  RegularExpression: 'the pattern matches the whole value',
})

/** Gateway API HTTPHeaderMatch. */
export const httpHeaderMatch = object('HTTPHeaderMatch', {
  type: optional(matchType, { doc: 'How value is compared.', default: 'Exact' }),
  name: required(plainHeaderName, 'Field name; case does not matter.'),
  value: required(headerValue, 'Value or pattern.'),
})
