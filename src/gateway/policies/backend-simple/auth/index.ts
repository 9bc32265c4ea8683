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
    const digest = compiler.entry(spec.secretRef.name, valueEntry, 'secretRef')
    return digest === undefined
      ? undefined
      : { type: 'value', digest, ...compiler.placed(spec.location, '') }
  }
  if (spec.passthrough !== undefined) {
    return { type: 'passthrough', ...compiler.placed(spec.location, '') }
  }
  if (spec.aws !== undefined) return awsOf(spec.aws, compiler)
  if (spec.jwtSign !== undefined) return compiler.jwtSign(spec.jwtSign)
  return compiler.grant(spec) ?? (spec.credentials && { type: 'none' })
}

function awsOf(
  { secretRef }: NonNullable<BackendAuthSpec['aws']>,
  compiler: AuthCompiler,
): BackendAuthConfig | undefined {
  if (secretRef === undefined) return { type: 'awsDefault' }
  const path = 'aws.secretRef'
  const accessKey = compiler.entry(secretRef.name, 'accessKey', path)
  const secretKey = accessKey && compiler.entry(secretRef.name, 'secretKey', path)
  if (!accessKey || !secretKey) return undefined
  const sessionToken = compiler.optionalEntry(secretRef.name, 'sessionToken')
  return { type: 'aws', accessKey, secretKey, ...(sessionToken && { sessionToken }) }
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
