import { object } from '../../../ground/schema/field.ts'
import { definePolicy } from '../define.ts'

const consentPagesSchema = object('ConsentPages', {})

/** The pages on which users allow the gateway to get tokens for them at other services. */
export const consentPages = definePolicy({
  section: 'traffic',
  field: 'consentPages',
  schema: consentPagesSchema,
  doc: 'Serves the consent pages of `backend.auth.oauthUserConsent` to users who are signed in by another policy, such as `oidc`.',
  security: true,
  changesRequest: false,
  compile: () => ({ config: {}, problems: [] }),
  apply: () => import('./apply.ts'),
})
