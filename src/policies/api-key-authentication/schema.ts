import { type Infer, object, optional, required } from '../../schema/field.ts'
import { exactlyOneOf } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { credentialMode } from '../../schema/shapes/authentication.ts'
import { localObjectReference } from '../../schema/shapes/references.ts'
import { labels } from '../../schema/shapes/selectors.ts'

const secretSelector = object('SecretSelector', {
  matchLabels: required(labels, 'Labels that a Secret must have.'),
})

const apiKeyAuthentication = object(
  'APIKeyAuthentication',
  {
    mode: optional(credentialMode, { doc: 'What happens without a valid key.', default: 'Strict' }),
    secretRef: optional(
      localObjectReference,
      'Secret with the keys: each entry is one key, as text or as JSON with key and metadata.',
    ),
    secretSelector: optional(secretSelector, 'Several such Secrets, chosen by label.'),
  },
  { rules: [exactlyOneOf('secretRef', 'secretSelector')] },
)
export type ApiKeyAuthenticationSpec = Infer<typeof apiKeyAuthentication>

export const apiKeyAuthenticationField = sectionField({
  section: 'traffic',
  field: 'apiKeyAuthentication',
  schema: apiKeyAuthentication,
  doc: 'Asks for an API key.',
})
