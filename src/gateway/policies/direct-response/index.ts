import { integer, list, object, optional, required, text } from '../../../ground/schema/field.ts'
import { atMostOneOf } from '../../../ground/schema/rules.ts'
import { celExpression, plainHeaderName } from '../../../ground/schema/strings.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const headerOfResponse = object('DirectResponseHeader', {
  name: required(plainHeaderName, 'Field name.'),
  value: required(celExpression, 'Value of the field.'),
})

/** Fields that say how a message is sent, which the gateway decides. */
const framing = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

/** Answers all requests with a configured status and body; no backend is called. */
export const directResponse = definePolicy({
  section: 'traffic',
  field: 'directResponse',
  schema: object(
    'DirectResponse',
    {
      status: required(integer({ min: 200, max: 599 }), 'Status code of the answer.'),
      headers: optional(
        list(headerOfResponse, { min: 1, max: 16 }),
        'Header fields of the answer. A field whose expression fails is left out.',
      ),
      body: optional(text({ min: 1, max: 4096 }), 'Body of the answer; no body if not set.'),
      bodyExpression: optional(
        celExpression,
        'Body of the answer as an expression. The body is empty if it fails.',
      ),
    },
    { rules: [atMostOneOf('body', 'bodyExpression')] },
  ),
  doc: 'Answers the request without a backend.',
  security: false,
  changesRequest: false,
  conditional: 'at most one',
  answers: true,
  expressions: [{ path: '', point: 'traffic' }],
  compile({ status, headers = [], body, bodyExpression }) {
    const problems: PolicyProblem[] = []
    const written = headers.flatMap(({ name, value: expression }, at) => {
      if (!framing.has(name.toLowerCase())) return [{ name, expression }]
      const message = `${name} is set by the gateway; it is ignored`
      problems.push({ path: `headers[${at}].name`, message, partial: true })
      return []
    })
    const more = { ...(written.length > 0 && { headers: written }), bodyExpression }
    return { config: { status, body, ...more }, problems }
  },
  apply: () => import('./apply.ts'),
})
