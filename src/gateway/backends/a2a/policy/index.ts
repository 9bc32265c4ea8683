/** `backend.a2a`: authorization of A2A clients, and signatures of agent cards. */
import type { References } from '../../../../ground/model/references.ts'
import { type Infer, object, optional, required } from '../../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../../ground/schema/rules.ts'
import { authorization, remoteJwks } from '../../../../ground/schema/shapes/authentication.ts'
import { compile as compileAuthorization } from '../../../policies/authorization/index.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../../../policies/define.ts'
import { fetchedKeys } from '../../../policies/jwt-authentication/keys.ts'
import type { BackendA2aConfig } from './config.ts'

const backendA2aSchema = object(
  'BackendA2A',
  {
    authorization: optional(
      authorization,
      'Evaluated for each request of an A2A client, with the variable `a2a`. Requests that are not A2A are refused.',
    ),
    cardSignature: optional(
      object('A2ACardSignature', {
        jwks: required(remoteJwks, 'Keys with which cards are signed.'),
      }),
      'Agent cards that none of these keys has signed are refused. Key sets that a card names are never fetched.',
    ),
  },
  { rules: [atLeastOneOf('authorization', 'cardSignature')] },
)

function compile(
  { authorization, cardSignature }: Infer<typeof backendA2aSchema>,
  references: References,
): Compiled<BackendA2aConfig> {
  const problems: PolicyProblem[] = []
  const notes: string[] = []
  const path = 'cardSignature.jwks'
  const found = cardSignature && fetchedKeys(cardSignature.jwks, references)
  if (found?.failure !== undefined) {
    problems.push({ path, message: `${found.failure}; no card is accepted` })
  }
  if (found?.pending !== undefined) notes.push(`${path}: ${found.pending}`)
  for (const message of found?.skipped ?? []) problems.push({ path, message, partial: true })
  const config: BackendA2aConfig = {
    ...(authorization && { authorization: compileAuthorization(authorization).config }),
    ...(found && { cardKeys: found.keys }),
  }
  // Without keys, every card is refused. Invalid rules close the backend; derive/expressions.ts finds them.
  return { config, problems, notes, protects: true }
}

export const backendA2a = definePolicy({
  section: 'backend',
  field: 'a2a',
  schema: backendA2aSchema,
  doc: 'Settings for A2A. They apply to backends of type a2a only. Beyond the interface of agentgateway.',
  security: true,
  expressions: [{ path: 'authorization', point: 'a2aMessage' }],
  compile,
  apply: () => import('./apply.ts'),
})
