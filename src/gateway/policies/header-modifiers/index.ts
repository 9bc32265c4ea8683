import { headerProblems } from '../../../ground/model/header-changes.ts'
import { headerChangesOf } from '../../../ground/model/inline-secrets.ts'
import { type HeaderChanges, secretsOfHeaders } from '../../../ground/model/resources.ts'
import { type Infer, object, optional } from '../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../ground/schema/rules.ts'
import { httpHeaderFilter } from '../../../ground/schema/shapes/headers.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const headerModifiersSchema = object(
  'HeaderModifiers',
  {
    request: optional(httpHeaderFilter, 'Changes to the request before it is sent to the backend.'),
    response: optional(
      httpHeaderFilter,
      'Changes to the response before it is sent to the client.',
    ),
  },
  { rules: [atLeastOneOf('request', 'response')] },
)
/** Reports values that are not valid in a header field, since the schema checks only names and lengths. */
function compile({ request, response }: Infer<typeof headerModifiersSchema>) {
  const config = {
    request: request && headerChangesOf(request),
    response: response && headerChangesOf(response),
  }
  const problems = [
    ...problemsOf('request', config.request),
    ...problemsOf('response', config.response),
  ]
  if (problems.length > 0) return { problems }
  const secrets = [config.request, config.response].flatMap(secretsOfHeaders)
  return { config, problems, secrets }
}

function problemsOf(message: string, changes: HeaderChanges | undefined): PolicyProblem[] {
  if (changes === undefined) return []
  return headerProblems(changes).map(({ path, ...rest }) => ({
    path: `${message}.${path}`,
    ...rest,
  }))
}

/** Sets, adds and removes header fields of requests and responses. */
export const headerModifiers = definePolicy({
  section: 'traffic',
  field: 'headerModifiers',
  schema: headerModifiersSchema,
  doc: 'Sets, adds and removes header fields of requests and responses.',
  security: false,
  endsRequest: false,
  compile,
  apply: () => import('./apply.ts'),
})
