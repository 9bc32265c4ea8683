import { type Infer, object, optional, text } from '../../../schema/field.ts'
import { exactlyOneOf } from '../../../schema/rules.ts'
import { sectionField } from '../../../schema/section-field.ts'
import { localObjectReference } from '../../../schema/shapes/references.ts'

const awsAuth = object('AwsAuth', {
  secretRef: optional(
    localObjectReference,
    'Secret with accessKey, secretKey and optionally sessionToken. Where unset, the credentials of the place that the gateway runs in, as the SDKs of AWS find them.',
  ),
})

export const backendAuth = object(
  'BackendAuth',
  {
    key: optional(text({ max: 2048 }), {
      doc: 'Value of the Authorization header; a bare value gets Bearer in front. A Secret is safer.',
      secret: true,
    }),
    secretRef: optional(
      localObjectReference,
      'Secret whose key Authorization holds the value of the Authorization header.',
    ),
    passthrough: optional(
      object('BackendAuthPassthrough', {}),
      'Adds the token of the client again after a JWT or API-key policy took it out.',
    ),
    aws: optional(awsAuth, 'Signs requests for AWS (Signature Version 4).'),
  },
  { rules: [exactlyOneOf('key', 'secretRef', 'passthrough', 'aws')] },
)
export type BackendAuthSpec = Infer<typeof backendAuth>

export const backendAuthField = sectionField({
  section: 'backend',
  field: 'auth',
  schema: backendAuth,
  doc: 'Credentials that requests to the backend carry.',
})
