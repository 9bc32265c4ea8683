import { type Infer, list, object, optional, required } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { celExpression, headerName } from '../../schema/strings.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { HeaderExpression, TransformationConfig, TransformConfig } from './config.ts'

const headerTransformation = object('HeaderTransformation', {
  name: required(headerName, 'Field name, or a pseudo-header.'),
  value: required(celExpression, 'Value of the field.'),
})

const headerTransformations = list(headerTransformation, { min: 1, max: 16 })

const transform = object(
  'Transform',
  {
    set: optional(headerTransformations, 'Headers that replace the values that are there.'),
    add: optional(headerTransformations, 'Headers that are added to the values that are there.'),
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
type TransformationSpec = Infer<typeof transformationSchema>

const transformationField = sectionField({
  section: 'traffic',
  field: 'transformation',
  schema: transformationSchema,
  doc: 'Changes headers and bodies by expressions.',
})

type TransformSpec = NonNullable<TransformationSpec['request']>
type Half = 'request' | 'response'

const pseudoHeaders: Readonly<Record<Half, readonly string[]>> = {
  request: [':method', ':scheme', ':authority', ':path'],
  response: [':status'],
}

/** Pseudo-headers that a half does not have, and removals of any, are left out with a message. */
function compile(spec: TransformationSpec): Compiled<TransformationConfig> {
  const problems: PolicyProblem[] = []
  const request = spec.request && compileHalf('request', spec.request, problems)
  const response = spec.response && compileHalf('response', spec.response, problems)
  return { config: { ...(request && { request }), ...(response && { response }) }, problems }
}

function compileHalf(half: Half, spec: TransformSpec, problems: PolicyProblem[]): TransformConfig {
  const leaveOut = (path: string, message: string): [] => {
    problems.push({ path: `${half}.${path}`, message, partial: true })
    return []
  }
  const headers = (list: 'set' | 'add'): HeaderExpression[] =>
    (spec[list] ?? []).flatMap(({ name, value }, at) => {
      const isKnown = !name.startsWith(':') || pseudoHeaders[half].includes(name)
      if (isKnown) return [{ name, expression: value }]
      return leaveOut(`${list}[${at}].name`, `a ${half} has no ${name}; it is ignored`)
    })
  const remove = (spec.remove ?? []).flatMap((name, at) => {
    if (!name.startsWith(':')) return [name]
    return leaveOut(`remove[${at}]`, `${name} cannot be removed; it is ignored`)
  })
  return {
    add: headers('add'),
    set: headers('set'),
    remove,
    ...(spec.body !== undefined && { body: spec.body }),
  }
}

/** Changes heads and bodies of requests and responses by expressions. */
export const transformation = definePolicy(transformationField, {
  security: true,
  preRouting: true,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
