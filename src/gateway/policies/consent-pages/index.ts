import { object } from '../../../ground/schema/field.ts'
import { definePolicy } from '../define.ts'

const consentPagesSchema = object('ConsentPages', {})

/** Serves the pages on which users allow the gateway to act for them at other services. */
export const consentPages = definePolicy({
  section: 'traffic',
  field: 'consentPages',
  schema: consentPagesSchema,
  doc: 'Serves the pages of `backend.auth.oauthUserConsent` to users who are signed in by another policy, such as `oidc`.',
  security: true,
  compile: () => ({ config: {}, problems: [] }),
  apply: () => import('./apply.ts'),
})
