import { htpasswdLinePattern } from '../../base/htpasswd.ts'
import { type Infer, list, object, optional, text } from '../../schema/field.ts'
import { exactlyOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { credentialMode } from '../../schema/shapes/authentication.ts'
import { localObjectReference } from '../../schema/shapes/references.ts'

const htpasswdLine = text({
  min: 1,
  max: 1024,
  pattern: htpasswdLinePattern,
  expects: 'a line <user>:<hash> with an apr1, bcrypt, crypt or SHA-1 hash, never a plain password',
})

const basicAuthentication = object(
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
      secret: true,
    }),
    secretRef: optional(
      localObjectReference,
      'Secret whose key .htaccess holds a whole htpasswd file.',
    ),
  },
  { rules: [exactlyOneOf('users', 'secretRef')] },
)
export type BasicAuthenticationSpec = Infer<typeof basicAuthentication>

export const basicAuthenticationField = sectionField({
  section: 'traffic',
  field: 'basicAuthentication',
  schema: basicAuthentication,
  doc: 'Asks for user name and password (RFC 7617).',
})
