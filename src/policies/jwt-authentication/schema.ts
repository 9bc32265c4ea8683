import { holdsPrivateKey } from '../../auth/jwt/key-set.ts'
import { type Infer, list, object, optional, required, text } from '../../schema/field.ts'
import { exactlyOneOf, rule } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { audiences, jwtMode, remoteJwks } from '../../schema/shapes/authentication.ts'
import { shortString } from '../../schema/strings.ts'

const inlineKeys = text({
  min: 2,
  max: 65_536,
  rules: [
    // Refused before anything of the object is written down.
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
    'Values of which the aud claim must have one; any audience where unset.',
  ),
  jwks: required(jwks, 'Keys that the issuer signs with.'),
})

const jwtAuthentication = object('JWTAuthentication', {
  mode: optional(jwtMode, { doc: 'What happens without a valid token.', default: 'Strict' }),
  providers: required(list(jwtProvider, { min: 1, max: 64 }), 'Issuers whose tokens are taken.'),
})
export type JwtAuthenticationSpec = Infer<typeof jwtAuthentication>

export const jwtAuthenticationField = sectionField({
  section: 'traffic',
  field: 'jwtAuthentication',
  schema: jwtAuthentication,
  doc: 'Validates JSON Web Tokens (RFC 7519) of clients.',
})
