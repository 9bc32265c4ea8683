/**
 * Fields and values of agentgateway's custom resources that Sluice does not have under the same path. A test compares
 * the schemas with the list of the source (`config/agentgateway-fields.json`), and fails if an entry is missing.
 */

interface Difference {
  /** Matches the path of the field, such as `.spec.backend.tunnel`, at its end. */
  readonly at: RegExp
  readonly reason: string
  /** The kind of the finding if the field is lost. If omitted, it is `protection` or `lost`, as the name suggests. */
  readonly loss?: 'stricter'
}

/** Sluice has no such field, and always does what these values say. The import removes them without a report. */
interface DefaultDifference extends Difference {
  readonly status: 'default'
  readonly values: readonly unknown[]
}

/** Sluice has the field at another path, to which the import moves it. */
interface MovedDifference extends Difference {
  readonly status: 'moved'
  readonly to: string
}

interface MissingDifference extends Difference {
  readonly status: 'refused' | 'not applicable'
  /** The values that Sluice does not have. If omitted, it does not have the field. */
  readonly only?: readonly string[]
}

type FieldDifference = DefaultDifference | MovedDifference | MissingDifference

const ending = (...paths: string[]) => new RegExp(`\\.(?:${paths.join('|')})$`)
const credential =
  '(?:secretRef|clientSecretRef|certificateRef|signingKeyRef|mtlsCertificateRef(?:\\.0)?)'
const isSecret = 'a credential is always a Secret; operators can fill one from another store'

const removedDefaults: readonly FieldDifference[] = [
  { at: ending(`${credential}\\.group`), status: 'default', values: [''], reason: isSecret },
  {
    at: ending(`${credential}\\.kind`),
    status: 'default',
    values: ['', 'Secret'],
    reason: isSecret,
  },
  {
    at: ending('promptGuard\\.streaming'),
    status: 'default',
    values: ['Enabled'],
    reason:
      'guards always check streams; realtime sessions are refused if a guard may mask or refuse texts',
  },
]

/** Fields of backends with models, and of their policies. */
const models: readonly FieldDifference[] = [
  {
    at: ending('openai\\.moderation'),
    status: 'refused',
    reason: 'use a guard with `openAIModeration`, which also protects the models of other vendors',
  },
  {
    at: ending('finalTransformations', 'transformations'),
    status: 'refused',
    reason: 'use `overrides` for fixed values, and `traffic.transformation` for expressions',
  },
  {
    at: ending('promptCaching\\.cacheMessageOffset'),
    status: 'refused',
    reason: 'the cache point is always at the last message but one',
  },
  {
    at: ending('webhook\\.headers'),
    status: 'refused',
    reason:
      "name the headers to forward in `forwardHeaderMatches`; a policy on the webhook's Service can set others",
  },
  {
    at: ending('formats\\.0\\.type'),
    status: 'not applicable',
    reason: 'realtime sessions pass without a special format',
    only: ['Realtime'],
  },
  {
    at: ending('ai\\.routes'),
    status: 'not applicable',
    reason: 'the paths that SDKs use need no map; name the type of other paths',
    only: ['Detect'],
  },
  {
    at: /^\.spec\.policies\.(?:headers|authorization)$/,
    status: 'refused',
    reason: 'write a GatewayPolicy for the route of the models',
  },
  {
    at: /^\.spec\.aws$/,
    status: 'refused',
    reason:
      'a static backend for the host of the runtime, with `auth.aws`, calls Bedrock AgentCore',
  },
  {
    at: ending('static\\.backendRef'),
    status: 'refused',
    reason: 'write the name of the Service in `host`, or select the Service with `selector`',
  },
  {
    at: ending('remote\\.url', 'jwks\\.url'),
    status: 'refused',
    reason: 'a static GatewayBackend for the URL, named in `backendRef`, does the same',
  },
  {
    at: ending('(?:bedrockGuardrails|googleModelArmor)\\.policies\\.(?:http|tcp)'),
    status: 'refused',
    reason: 'the time limits of the guard apply',
  },
  {
    at: ending('openAIModeration\\.policies\\.auth\\.location'),
    status: 'refused',
    reason: 'the service reads its key from `Authorization`',
  },
]

/** Fields about connections to backends. */
const connections: readonly FieldDifference[] = [
  {
    at: ending('tls\\.certificateSource'),
    status: 'refused',
    reason: 'the gateway has no SPIFFE identity; name a Secret in `mtlsCertificateRef`',
  },
  {
    at: ending('keyExchangeGroups'),
    status: 'refused',
    reason: 'TLS offers the default groups of OpenSSL',
  },
  {
    at: ending('tunnel\\.backendRef'),
    status: 'refused',
    reason: 'name the proxy in `url`',
  },
  {
    at: ending('(?:bedrockGuardrails|googleModelArmor|openAIModeration)\\.policies\\.tunnel'),
    status: 'refused',
    reason: 'guards call the services of vendors without a proxy',
  },
  { at: ending('unixPath'), status: 'refused', reason: 'backends have a host and a port' },
  {
    at: /\.(?:backend|policies)\.(?:extAuth|transformation)$/,
    status: 'refused',
    reason: 'write it in `traffic` of a policy for the routes that use the backend',
  },
  {
    at: ending('requestedTokenType'),
    status: 'refused',
    reason: '`crossAppAccess` gets an ID-JAG and exchanges it',
    only: ['IdJag'],
  },
]

/** Fields about connections of clients. */
const clients: readonly FieldDifference[] = [
  {
    at: /^\.spec\.strategy$/,
    status: 'refused',
    reason: 'protections of a Gateway always apply; a more specific policy replaces other settings',
  },
  {
    at: ending('http1HeaderCase'),
    status: 'refused',
    reason: 'header names are written in lower case',
  },
  {
    at: ending('accessLog\\.otlp\\.url', 'tracing\\.url'),
    status: 'refused',
    reason: 'a static GatewayBackend for the URL, named in `backendRef`, does the same',
  },
]

/** Fields about requests. */
const requests: readonly FieldDifference[] = [
  {
    at: ending('apiKeyAuthentication\\.mode'),
    status: 'refused',
    reason: 'use Optional, which refuses keys that are not valid',
    only: ['Permissive'],
  },
  {
    at: ending('(?:extAuth|extProc|rateLimit|remote)\\..*url', 'remote\\.url', 'otlp\\.url'),
    status: 'refused',
    reason: 'a static GatewayBackend for the URL, named in `backendRef`, does the same',
  },
  {
    at: ending('transformation\\..*metadata'),
    status: 'refused',
    reason: 'repeat the expression where its value is needed',
  },
]

/** Fields about deployments of the proxy. */
const deployments: readonly FieldDifference[] = [
  {
    at: /^\.spec\.istio$/,
    status: 'not applicable',
    reason: 'the gateway is not a part of an Istio mesh',
  },
  {
    at: /^\.spec\.spiffe$/,
    status: 'not applicable',
    reason: 'the gateway reads certificates from Secrets',
  },
]

export const differences: readonly FieldDifference[] = [
  ...removedDefaults,
  {
    at: /^\.spec\.policies\.promptGuard$/,
    status: 'moved',
    to: '.spec.policies.ai.promptGuard',
    reason: 'guards are a part of the policies for models',
  },
  ...models,
  ...connections,
  ...clients,
  ...requests,
  ...deployments,
]

/** Returns the difference for a field, by its path with the names of the source, such as `spec.backend.tls.sni[0]`. */
export function differenceAt(path: string): FieldDifference | undefined {
  const dotted = `.${path.replaceAll(/\[(\d+)\]/g, '.0')}`
  return differences.find(({ at, ...rest }) => !('only' in rest) && at.test(dotted))
}
