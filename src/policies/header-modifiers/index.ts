import { headerProblems } from '../../model/header-changes.ts'
import type { HeaderChanges, HeaderValue } from '../../model/resources.ts'
import { type Infer, object, optional } from '../../schema/field.ts'
import { atLeastOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { httpHeaderFilter } from '../../schema/shapes/headers.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { HeaderModifiersConfig } from './apply.ts'

const headerModifiersSchema = object(
  'HeaderModifiers',
  {
    request: optional(httpHeaderFilter, 'Changes to the request before it goes to the backend.'),
    response: optional(httpHeaderFilter, 'Changes to the response before it goes to the client.'),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)
type HeaderModifiersSpec = Infer<typeof headerModifiersSchema>

const headerModifiersField = sectionField({
  section: 'traffic',
  field: 'headerModifiers',
  schema: headerModifiersSchema,
  doc: 'Sets, adds and removes header fields of requests and responses.',
})

type HeaderFilterSpec = NonNullable<HeaderModifiersSpec['request']>

/** Values that no HTTP field can carry are problems: the schema checks names and bounds only. */
function compile(spec: HeaderModifiersSpec): Compiled<HeaderModifiersConfig> {
  const request = spec.request && changesOf(spec.request)
  const response = spec.response && changesOf(spec.response)
  const problems = [...problemsOf('request', request), ...problemsOf('response', response)]
  return problems.length > 0 ? { problems } : { config: { request, response }, problems }
}

function problemsOf(half: string, changes: HeaderChanges | undefined): PolicyProblem[] {
  if (changes === undefined) return []
  return headerProblems(changes).map(({ path, message }) => ({ path: `${half}.${path}`, message }))
}

function changesOf(filter: HeaderFilterSpec): HeaderChanges {
  return {
    set: filter.set?.map(pair) ?? [],
    add: filter.add?.map(pair) ?? [],
    remove: filter.remove ?? [],
  }
}

const pair = ({ name, value }: HeaderValue): HeaderValue => ({ name, value })

/** Sets, adds and removes header fields of requests and responses. */
export const headerModifiers = definePolicy(headerModifiersField, {
  security: false,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
