import { secretsOfLiterals } from '../../../ground/model/inline-secrets.ts'
import { type Infer, list, object, optional, required } from '../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../ground/schema/rules.ts'
import { celExpression, headerName } from '../../../ground/schema/strings.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const headerTransformation = object('HeaderTransformation', {
  name: required(headerName, 'Field name, or a pseudo-header.'),
  value: required(celExpression, { doc: 'Value of the field.', secret: 'headerExpression' }),
})

const headerTransformations = list(headerTransformation, { min: 1, max: 16 })

const transform = object(
  'Transform',
  {
    set: optional(headerTransformations, 'Headers to set. They replace existing values.'),
    add: optional(headerTransformations, 'Headers to add. Existing values stay.'),
    remove: optional(list(headerName, { min: 1, max: 16 }), 'Headers that are removed.'),
    body: optional(celExpression, 'New body.'),
  },
  { rules: [atLeastOneOf('set', 'add', 'remove', 'body')] },
)

const transformationSchema = object(
  'Transformation',
  {
    request: optional(transform, 'Changes to the request.'),
    response: optional(transform, 'Changes to the response.'),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)
type Message = 'request' | 'response'

const pseudoHeaders: Readonly<Record<Message, readonly string[]>> = {
  request: [':method', ':scheme', ':authority', ':path'],
  response: [':status'],
}

/** Reports and ignores pseudo-headers that the message does not have, and removals of pseudo-headers. */
function compileTransform(
  message: Message,
  spec: Infer<typeof transform>,
  problems: PolicyProblem[],
) {
  const ignore = (path: string, text: string): [] => {
    problems.push({ path: `${message}.${path}`, message: `${text}; it is ignored`, partial: true })
    return []
  }
  const headers = (list: 'set' | 'add') =>
    (spec[list] ?? []).flatMap(({ name, value }, at) => {
      const isKnown = !name.startsWith(':') || pseudoHeaders[message].includes(name)
      if (isKnown) return [{ name, expression: value }]
      return ignore(`${list}[${at}].name`, `a ${message} has no ${name}`)
    })
  const remove = (spec.remove ?? []).flatMap((name, at) => {
    if (!name.startsWith(':')) return [name]
    return ignore(`remove[${at}]`, `${name} cannot be removed`)
  })
  return { add: headers('add'), set: headers('set'), remove, body: spec.body }
}

/** Changes headers and bodies of requests and responses with expressions. */
export const transformation = definePolicy({
  section: 'traffic',
  field: 'transformation',
  schema: transformationSchema,
  doc: 'Changes headers and bodies by expressions.',
  security: true,
  endsRequest: false,
  conditional: 'at most one',
  preRouting: true,
  expressions: [
    { path: 'request', point: 'traffic', early: 'earlyTransformation' },
    { path: 'response', point: 'response' },
  ],
  compile({ request, response }) {
    const problems: PolicyProblem[] = []
    const config = {
      request: request && compileTransform('request', request, problems),
      response: response && compileTransform('response', response, problems),
    }
    const headers = [config.request, config.response].flatMap((one) =>
      one === undefined ? [] : [...one.add, ...one.set],
    )
    const secrets = secretsOfLiterals(headers)
    const digests = secrets.map(({ digest }) => digest)
    return {
      config: { ...config, ...(digests.length > 0 && { digests }) },
      problems,
      secrets,
    }
  },
  apply: () => import('./apply.ts'),
})
