import { modelResource } from '../../../../engines/auth/entra/resources.ts'
import { inlineSecretRef } from '../../../../ground/model/inline-secrets.ts'
import type { References } from '../../../../ground/model/references.ts'
import { type Compiled, definePolicy } from '../../define.ts'
import type { BackendAuthConfig } from './apply.ts'
import { AuthCompiler } from './compile.ts'
import { type BackendAuthSpec, backendAuthSchema } from './schema.ts'

const valueEntry = 'Authorization'

/** If a Secret or entry is missing, calls to the backend fail; they are not sent without credentials. */
export function compile(
  spec: BackendAuthSpec,
  references: References,
): Compiled<BackendAuthConfig> {
  const compiler = new AuthCompiler(references)
  const method = methodOf(spec, compiler)
  const credentials = compiler.credentials(spec)
  const { problems, notes, secrets } = compiler
  if (problems.length > 0 || method === undefined) return { problems }
  const config = { ...method, ...(credentials.length > 0 && { credentials }) }
  return {
    config,
    problems,
    ...(secrets.length > 0 && { secrets }),
    ...(notes.length > 0 && { notes }),
  }
}

function methodOf(spec: BackendAuthSpec, compiler: AuthCompiler): BackendAuthConfig | undefined {
  if (spec.key !== undefined) {
    const ref = inlineSecretRef(spec.key, 'key')
    compiler.secrets.push(ref)
    return { type: 'value', digest: ref.digest, ...compiler.placed(spec.location, '') }
  }
  if (spec.secretRef !== undefined) {
    const digest = compiler.entry(
      spec.secretRef.name,
      spec.secretRef.key ?? valueEntry,
      'secretRef',
    )
    return digest === undefined
      ? undefined
      : { type: 'value', digest, ...compiler.placed(spec.location, '') }
  }
  if (spec.passthrough !== undefined) {
    return { type: 'passthrough', ...compiler.placed(spec.location, '') }
  }
  if (spec.aws !== undefined) return awsOf(spec.aws, compiler)
  if (spec.azure !== undefined) return azureOf(spec.azure, compiler)
  if (spec.gcp !== undefined) return gcpOf(spec.gcp, compiler)
  if (spec.jwtSign !== undefined) return compiler.jwtSign(spec.jwtSign)
  if (spec.oauthUserConsent !== undefined) return compiler.userConsent(spec.oauthUserConsent)
  return compiler.grant(spec) ?? (spec.credentials && { type: 'none' })
}

function awsOf(
  { secretRef, assumeRole, serviceName, region }: NonNullable<BackendAuthSpec['aws']>,
  compiler: AuthCompiler,
): BackendAuthConfig | undefined {
  const scope = { ...(serviceName && { serviceName }), ...(region && { region }) }
  if (assumeRole !== undefined) {
    return { type: 'awsRole', ...assumeRole, tags: assumeRole.tags ?? [], ...scope }
  }
  if (secretRef === undefined) return { type: 'awsDefault', ...scope }
  const path = 'aws.secretRef'
  const accessKey = compiler.entry(secretRef.name, 'accessKey', path)
  const secretKey = accessKey && compiler.entry(secretRef.name, 'secretKey', path)
  if (!accessKey || !secretKey) return undefined
  const sessionToken = compiler.optionalEntry(secretRef.name, 'sessionToken')
  return { type: 'aws', accessKey, secretKey, ...(sessionToken && { sessionToken }), ...scope }
}

function azureOf(
  { secretRef, managedIdentity, workloadIdentity, resource }: NonNullable<BackendAuthSpec['azure']>,
  compiler: AuthCompiler,
): BackendAuthConfig | undefined {
  const common = { type: 'azure', resource: resource ?? modelResource } as const
  if (managedIdentity !== undefined) return { ...common, managedIdentity }
  if (workloadIdentity !== undefined) return { ...common, workloadIdentity: true }
  if (secretRef === undefined) return common
  const entry = (key: string) => compiler.entry(secretRef.name, key, 'azure.secretRef')
  const [clientId, tenantId, clientSecret] = ['clientID', 'tenantID', 'clientSecret'].map(entry)
  if (!clientId || !tenantId || !clientSecret) return undefined
  return { ...common, secret: { clientId, tenantId, clientSecret } }
}

function gcpOf(
  { type, secretRef, audience }: NonNullable<BackendAuthSpec['gcp']>,
  compiler: AuthCompiler,
): BackendAuthConfig | undefined {
  const file =
    secretRef &&
    compiler.entry(secretRef.name, secretRef.key ?? 'credentials.json', 'gcp.secretRef')
  if (secretRef !== undefined && file === undefined) return undefined
  return {
    type: 'gcp',
    idToken: type === 'IdToken',
    ...(file && { file }),
    ...(audience && { audience }),
  }
}

/** Adds credentials to requests to the backend. Without the credentials the backend is not called. */
export const backendAuth = definePolicy({
  section: 'backend',
  field: 'auth',
  schema: backendAuthSchema,
  doc: 'Credentials that requests to the backend carry.',
  security: true,
  expressions: [{ path: '', point: 'backendCredentials' }],
  compile,
  apply: () => import('./apply.ts'),
})
