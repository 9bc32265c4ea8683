import { inlineSecretRef } from '../../../../ground/model/inline-secrets.ts'
import { missingEntry, type References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { type Infer, object, optional, text } from '../../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../../ground/schema/rules.ts'
import { localReference } from '../../../../ground/schema/shapes/references.ts'
import { type Compiled, definePolicy } from '../../define.ts'
import type { BackendAuthConfig } from './apply.ts'

const awsAuth = object('AwsAuth', {
  secretRef: optional(
    localReference('Secret'),
    'Secret with accessKey, secretKey and optionally sessionToken. If not set, the credentials of the environment that the gateway runs in, as the AWS SDKs find them.',
  ),
})

const schema = object(
  'BackendAuth',
  {
    key: optional(text({ max: 2048 }), {
      doc: 'Value of the Authorization header; Bearer is added to a value without a scheme. A Secret is safer.',
      secret: 'value',
    }),
    secretRef: optional(
      localReference('Secret'),
      'Secret whose key Authorization holds the value of the Authorization header.',
    ),
    passthrough: optional(
      object('BackendAuthPassthrough', {}),
      'Forwards the token of the client, which a JWT or API key policy has verified and removed.',
    ),
    aws: optional(awsAuth, 'Signs requests for AWS (Signature Version 4).'),
  },
  { rules: [exactlyOneOf('key', 'secretRef', 'passthrough', 'aws')] },
)
type BackendAuthSpec = Infer<typeof schema>

type Result = Compiled<BackendAuthConfig>

const valueEntry = 'Authorization'

/** If a Secret or entry is missing, calls to the backend fail; they are not sent without credentials. */
export function compile(spec: BackendAuthSpec, references: References): Result {
  if (spec.key !== undefined) return value(inlineSecretRef(spec.key, 'key'))
  if (spec.secretRef !== undefined) {
    const entry = entryOf(spec.secretRef.name, valueEntry, references)
    return typeof entry === 'string' ? refused('secretRef', entry) : value(entry)
  }
  if (spec.aws?.secretRef !== undefined) return aws(spec.aws.secretRef.name, references)
  if (spec.aws !== undefined) return { config: { type: 'awsDefault' }, problems: [] }
  return { config: { type: 'passthrough' }, problems: [] }
}

const value = (ref: SecretRef): Result => ({
  config: { type: 'value', digest: ref.digest },
  problems: [],
  secrets: [ref],
})

const refused = (path: string, message: string): Result => ({ problems: [{ path, message }] })

function aws(name: string, references: References): Result {
  const path = 'aws.secretRef'
  const accessKey = entryOf(name, 'accessKey', references)
  if (typeof accessKey === 'string') return refused(path, accessKey)
  const secretKey = entryOf(name, 'secretKey', references)
  if (typeof secretKey === 'string') return refused(path, secretKey)
  const sessionToken = references.secret(name)?.ref('sessionToken')
  return {
    config: {
      type: 'aws',
      accessKey: accessKey.digest,
      secretKey: secretKey.digest,
      ...(sessionToken && { sessionToken: sessionToken.digest }),
    },
    problems: [],
    secrets: [accessKey, secretKey, ...(sessionToken ? [sessionToken] : [])],
  }
}

/** Returns the reference to a non-empty entry, or a text that says why there is none. */
function entryOf(name: string, key: string, references: References): SecretRef | string {
  const secret = references.secret(name)
  if (secret === undefined) return `Secret ${name} does not exist`
  const ref = secret.ref(key)
  if (ref === undefined) return missingEntry(secret, key)
  if (secret.entries[key]?.isEmpty === true) return `Secret ${secret.label}: ${key} is empty`
  return ref
}

/** Adds credentials to requests to the backend. Without the credentials the backend is not called. */
export const backendAuth = definePolicy({
  section: 'backend',
  field: 'auth',
  schema,
  doc: 'Credentials that requests to the backend carry.',
  security: true,
  compile,
  apply: () => import('./apply.ts'),
})
