import { missingEntry, type References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { type Infer, object, optional, required, text } from '../../../../ground/schema/field.ts'
import { localReference } from '../../../../ground/schema/shapes/references.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../../define.ts'
import type { BackendTunnelConfig } from './apply.ts'

const proxyUrl = text({
  name: 'ProxyURL',
  min: 1,
  max: 1024,
  pattern: '^(https?|socks5)://[^/?#@\\s]+$',
})

const schema = object('BackendTunnel', {
  url: required(
    proxyUrl,
    'The proxy: http:// or https:// (HTTP CONNECT; default ports 80 and 443), or socks5:// (default port 1080). `backendRef` is not supported.',
  ),
  secretRef: optional(
    localReference('Secret'),
    'A Secret with `username` and `password` for the proxy. Beyond the interface of agentgateway.',
  ),
})

const defaultPorts = { http: 80, https: 443, socks5: 1080 }

/** If the policy cannot be applied, connections fail; they never bypass the proxy. */
function compile(
  { url, secretRef }: Infer<typeof schema>,
  references: References,
): Compiled<BackendTunnelConfig> {
  const parsed = URL.parse(url)
  const scheme = url.slice(0, url.indexOf(':')) as keyof typeof defaultPorts
  const problems: PolicyProblem[] = []
  if (parsed === null || parsed.hostname === '') {
    problems.push({ path: 'url', message: 'the URL has no valid host and port' })
  }
  const secrets = secretRef === undefined ? [] : credentialsOf(secretRef.name, references, problems)
  if (parsed === null || problems.length > 0) return { problems }
  const [username, password] = secrets
  const config: BackendTunnelConfig = {
    scheme,
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: parsed.port === '' ? defaultPorts[scheme] : Number(parsed.port),
    ...(username && password && { username: username.digest, password: password.digest }),
  }
  return { config, problems, ...(secrets.length > 0 && { secrets }) }
}

function credentialsOf(
  name: string,
  references: References,
  problems: PolicyProblem[],
): SecretRef[] {
  const secret = references.secret(name)
  const refs = ['username', 'password'].map((key) => {
    const ref = secret?.ref(key)
    const message =
      secret === undefined ? `Secret ${name} does not exist` : missingEntry(secret, key)
    if (ref === undefined) problems.push({ path: 'secretRef', message })
    return ref
  })
  return refs.flatMap((ref) => ref ?? [])
}

/** Sends all connections to the backend through a proxy. */
export const backendTunnel = definePolicy({
  section: 'backend',
  field: 'tunnel',
  schema,
  doc: 'A proxy through which connections to the backend are made, as with HTTPS_PROXY.',
  // A proxy is often the only permitted path, or inspects connections.
  security: true,
  compile,
  apply: () => import('./apply.ts'),
})
