import { htpasswdLinePattern } from '../../../engines/auth/passwords/htpasswd.ts'
import { isFieldValue } from '../../../ground/model/header-changes.ts'
import { inlineSecretRef } from '../../../ground/model/inline-secrets.ts'
import { missingEntry, type References } from '../../../ground/model/references.ts'
import type { SecretRef } from '../../../ground/model/resources.ts'
import { type Infer, list, object, optional, text } from '../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../ground/schema/rules.ts'
import { credentialLocation, credentialMode } from '../../../ground/schema/shapes/authentication.ts'
import { secretKeyReference } from '../../../ground/schema/shapes/references.ts'
import { compileLocation } from '../../tokens/compile-location.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const htpasswdLine = text({
  min: 1,
  max: 1024,
  pattern: htpasswdLinePattern,
  expects: 'a line <user>:<hash> with an apr1, bcrypt, crypt or SHA-1 hash, never a plain password',
})

const entryName = '.htaccess'

const basicAuthenticationSchema = object(
  'BasicAuthentication',
  {
    mode: optional(credentialMode, {
      doc: 'What happens without valid credentials.',
      default: 'Strict',
    }),
    realm: optional(text({ max: 1024 }), {
      doc: 'Realm that the WWW-Authenticate header of a refusal names.',
      default: 'Restricted',
    }),
    users: optional(list(htpasswdLine, { min: 1, max: 256 }), {
      doc: 'Lines of an htpasswd file, <user>:<hash>; MD5 (apr1), bcrypt, crypt and SHA-1 hashes. Never a plain password.',
      secret: 'value',
    }),
    location: optional(
      credentialLocation,
      'Where the credentials are: `USER:PASSWORD` in base64. If not set, in `Authorization` with the scheme `Basic`.',
    ),
    secretRef: optional(
      secretKeyReference('HtpasswdReference', entryName),
      'Secret with a whole htpasswd file.',
    ),
  },
  { rules: [exactlyOneOf('users', 'secretRef')] },
)
type BasicAuthenticationSpec = Infer<typeof basicAuthenticationSchema>

interface Credentials {
  readonly files: readonly SecretRef[]
  readonly problems: readonly PolicyProblem[]
}

/**
 * If the Secret is missing or unusable, the policy still applies, but no credentials are valid: Strict
 * rejects all requests, and the status says why.
 */
function compile(spec: BasicAuthenticationSpec, references: References) {
  const { mode = 'Strict', realm = 'Restricted', location } = spec
  if (!isFieldValue(realm)) {
    return { problems: [{ path: 'realm', message: 'holds characters that no header can carry' }] }
  }
  const { files, problems } =
    spec.secretRef === undefined
      ? inlineUsers(spec.users ?? [])
      : fromSecret(spec.secretRef, references)
  const config = {
    mode,
    realm,
    files: files.map(({ digest }) => digest),
    ...(location && { location: compileLocation(location) }),
  }
  return { config, problems, protects: true as const, secrets: files }
}

/** `users` are digests: when the object was observed, its lines were checked and replaced by them. */
function inlineUsers(users: readonly string[]): Credentials {
  const files = users.map((line, index) => inlineSecretRef(line, `users[${index}]`))
  return { files, problems: [] }
}

function fromSecret(
  { name, key = entryName }: { readonly name: string; readonly key?: string },
  references: References,
): Credentials {
  const secret = references.secret(name)
  const unusable = (message: string): Credentials => ({
    files: [],
    problems: [{ path: 'secretRef', message: `${message}; no credentials are accepted` }],
  })
  if (secret === undefined) return unusable(`Secret ${name} does not exist`)
  const ref = secret.ref(key)
  if (ref === undefined) return unusable(missingEntry(secret, key))
  const lines = secret.entries[key]?.htpasswd ?? []
  const bad = lines.filter(({ hash }) => hash === 'unsupported' || hash === 'malformed')
  const where = `${key} of Secret ${secret.label}`
  if (lines.length === bad.length) {
    return unusable(`${where} has no line <user>:<hash> with an apr1, bcrypt, crypt or SHA-1 hash`)
  }
  const problems = bad.map(({ line, hash }): PolicyProblem => {
    const what = hash === 'malformed' ? 'is not <user>:<hash>' : 'has a hash of no supported form'
    return { path: 'secretRef', message: `line ${line} of ${where} ${what}`, partial: true }
  })
  return { files: [ref], problems }
}

/** Requires requests to carry a valid user name and password. */
export const basicAuthentication = definePolicy({
  section: 'traffic',
  field: 'basicAuthentication',
  schema: basicAuthenticationSchema,
  doc: 'Requires a user name and a password (RFC 7617).',
  security: true,
  preRouting: true,
  expressions: [{ path: 'location.expression', point: 'credentials' }],
  compile,
  apply: () => import('./apply.ts'),
})
