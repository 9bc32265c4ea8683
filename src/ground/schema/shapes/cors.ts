/** The CORS filter of the Gateway API (HTTPRoute, GEP-1767). */
import { boolean, choice, integer, list, object, optional, text } from '../field.ts'
import { rule } from '../rules.ts'
import { plainHeaderName } from '../strings.ts'

const wildcardAlone = (what: string) =>
  rule<readonly string[]>({
    message: `${what} cannot contain '*' alongside other values`,
    cel: "!('*' in self && self.size() > 1)",
    holds: (values) => !(values.includes('*') && values.length > 1),
  })

const origin = text({
  name: 'CORSOrigin',
  min: 1,
  max: 253,
  pattern:
    '(^\\*$)|(^(http(s)?):\\/\\/(((\\*\\.)?([a-zA-Z0-9\\-]+\\.)*[a-zA-Z0-9-]+|\\*)(:([0-9]{1,5}))?)$)',
  expects: '*, or an http or https origin whose first label may be *',
})

/** HTTP methods of the Gateway API, with empty explanations: they need none. */
export const httpMethods = {
  GET: '',
  HEAD: '',
  POST: '',
  PUT: '',
  DELETE: '',
  CONNECT: '',
  OPTIONS: '',
  TRACE: '',
  PATCH: '',
} as const

const method = choice('CORSMethod', { ...httpMethods, '*': 'every method' })

export const corsFields = {
  allowOrigins: optional(
    list(origin, { max: 64, unique: 'value', rules: [wildcardAlone('allowOrigins')] }),
    'Origins whose scripts may read the response; * allows every origin.',
  ),
  allowCredentials: optional(
    boolean(),
    'Whether the request may have cookies and other credentials.',
  ),
  allowMethods: optional(
    list(method, { max: 9, unique: 'value', rules: [wildcardAlone('allowMethods')] }),
    'Methods that a cross-origin request may use; * allows every method.',
  ),
  allowHeaders: optional(
    list(plainHeaderName, { max: 64, unique: 'value', rules: [wildcardAlone('allowHeaders')] }),
    'Request headers that a cross-origin request may carry; * allows every header.',
  ),
  exposeHeaders: optional(
    list(plainHeaderName, { max: 64, unique: 'value' }),
    'Response headers that scripts may read.',
  ),
  maxAge: optional(integer({ min: 1 }), {
    doc: 'How long a browser may keep the preflight response.',
    unit: 'seconds',
    default: 5,
  }),
} as const

export const corsFilter = object('CORS', corsFields)
