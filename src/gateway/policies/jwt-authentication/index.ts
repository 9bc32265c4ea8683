import { holdsPrivateKey, parseKeySet } from '../../../engines/auth/jwt/key-set.ts'
import type { JwtProvider } from '../../../engines/auth/jwt/verifier.ts'
import type { References } from '../../../ground/model/references.ts'
import { type Infer, list, object, optional, required, text } from '../../../ground/schema/field.ts'
import { exactlyOneOf, rule } from '../../../ground/schema/rules.ts'
import { audiences, jwtMode, remoteJwks } from '../../../ground/schema/shapes/authentication.ts'
import { shortString } from '../../../ground/schema/strings.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'
import { type FoundKeys, fetchedKeys, usable } from './keys.ts'

const inlineKeys = text({
  min: 2,
  max: 65_536,
  rules: [
    // Part of the schema, so that private keys are rejected before the object is stored.
    rule<string>({
      message: 'must hold public keys only: this one has private or symmetric key material',
      holds: (value) => !holdsPrivateKey(value),
    }),
  ],
})

const jwks = object(
  'JWKS',
  {
    remote: optional(remoteJwks, 'An endpoint that serves the keys.'),
    inline: optional(inlineKeys, 'A JSON Web Key Set as text (RFC 7517).'),
  },
  { rules: [exactlyOneOf('remote', 'inline')] },
)

const jwtProvider = object('JWTProvider', {
  issuer: required(shortString, 'Value of the iss claim.'),
  audiences: optional(
    audiences,
    'The aud claim must have one of these values. If not set, any audience is accepted.',
  ),
  jwks: required(jwks, 'Keys with which the issuer signs.'),
})

const jwtAuthenticationSchema = object('JWTAuthentication', {
  mode: optional(jwtMode, { doc: 'What happens without a valid token.', default: 'Strict' }),
  providers: required(list(jwtProvider, { min: 1, max: 64 }), 'Issuers whose tokens are accepted.'),
})
type JwtAuthenticationSpec = Infer<typeof jwtAuthenticationSchema>

type ProviderSpec = JwtAuthenticationSpec['providers'][number]

/**
 * If a provider has no usable keys, its tokens are rejected; other providers are not affected. The policy
 * always applies: if no provider has keys, Strict rejects all requests, and the status says why.
 */
function compile({ mode = 'Strict', providers }: JwtAuthenticationSpec, references: References) {
  const problems: PolicyProblem[] = []
  const notes: string[] = []
  const compiled = providers.map(({ issuer, audiences, jwks }, index): JwtProvider => {
    const path = `providers[${index}].jwks.${jwks.remote === undefined ? 'inline' : 'remote'}`
    const { keys, failure, pending, skipped = [] } = findKeys(jwks, references)
    if (failure !== undefined) {
      const message = `${failure}; no token of ${issuer} is accepted`
      problems.push({ path, message, ...(providers.length > 1 && { partial: true }) })
    }
    if (pending !== undefined) notes.push(`${path}: ${pending}`)
    for (const message of skipped) problems.push({ path, message, partial: true })
    return { issuer, audiences, keys }
  })
  const isUsable = notes.length > 0 || compiled.some(({ keys }) => keys.length > 0)
  if (!isUsable && providers.length > 1) {
    problems.push({ path: 'providers', message: 'none has a key; no token is accepted' })
  }
  return { config: { mode, providers: compiled }, problems, notes, protects: true as const }
}

function findKeys({ inline, remote }: ProviderSpec['jwks'], references: References): FoundKeys {
  if (remote !== undefined) return fetchedKeys(remote, references)
  return usable(parseKeySet(inline ?? ''), 'the key set')
}

/** Requires requests to carry a valid JWT. */
export const jwtAuthentication = definePolicy({
  section: 'traffic',
  field: 'jwtAuthentication',
  schema: jwtAuthenticationSchema,
  doc: 'Validates JSON Web Tokens (RFC 7519) of clients.',
  security: true,
  preRouting: true,
  compile,
  apply: () => import('./apply.ts'),
})
