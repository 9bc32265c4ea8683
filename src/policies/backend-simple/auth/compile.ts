import { inlineSecretRef } from '../../../model/inline-secrets.ts'
import type { ReferencedSecret, References } from '../../../model/references.ts'
import type { SecretRef } from '../../../model/resources.ts'
import type { Compiled } from '../../define.ts'
import type { BackendAuthConfig } from './config.ts'
import type { BackendAuthSpec } from './schema.ts'

type Result = Compiled<BackendAuthConfig>

const valueEntry = 'Authorization'

/**
 * `backend.auth`. A Secret or entry that is missing is a problem: the backend then is not called at
 * all, rather than as nobody.
 */
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

/** An entry that has a value, or what is wrong. */
function entryOf(name: string, key: string, references: References): SecretRef | string {
  const secret = references.secret(name)
  if (secret === undefined) return `Secret ${name} does not exist`
  const ref = secret.ref(key)
  if (ref === undefined) return `Secret ${secret.label} has no entry ${key}${others(secret)}`
  if (secret.entries[key]?.isEmpty === true) return `Secret ${secret.label}: ${key} is empty`
  return ref
}

function others({ entries }: ReferencedSecret): string {
  const names = Object.keys(entries).sort().join(', ')
  return names === '' ? '' : `, only ${names}`
}
