/** Converts Backend, AIServiceBackend and BackendSecurityPolicy to GatewayBackends. */
import { entryOf, isObject } from '../../../ground/base/json-object.ts'
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { namesOf } from '../kubernetes.ts'
import { providerOf } from '../models.ts'
import { addSecret, toBackend } from '../targets.ts'
import { enter } from './targets.ts'

/** An address with the settings of connections to it. */
interface Server {
  readonly host: string
  readonly port: number
  readonly policies: Fields
}

const providers: Readonly<Record<string, string>> = {
  OpenAI: 'openai',
  AzureOpenAI: 'azure',
  Anthropic: 'anthropic',
  AWSBedrock: 'bedrock',
  GCPVertexAI: 'vertex_ai',
}

const nameOf = (field: SourceField): string => namesOf(field).name

/** A rule of an HTTPRoute that sends requests to an AIServiceBackend. */
interface ServiceUse {
  readonly service: string
  readonly route: string
  readonly rule: string
  /** The model that replaces that of the request. */
  readonly model: string | undefined
}

export class Backends {
  /** Where AIServiceBackends are used; filled by the conversion of routes. */
  readonly uses: ServiceUse[] = []
  readonly kinds = ['Backend', 'AIServiceBackend', 'BackendSecurityPolicy']
  readonly #result: Conversion
  /** The GatewayBackends of each Backend: one for each endpoint. */
  readonly #names = new Map<string, string[]>()
  readonly #servers = new Map<string, readonly Server[]>()
  readonly #services = new Map<string, SourceField>()
  readonly #credentials = new Map<string, SourceField>()

  constructor(
    backends: readonly SourceField[],
    services: readonly SourceField[],
    credentials: readonly SourceField[],
    result: Conversion,
  ) {
    this.#result = result
    for (const field of services) this.#services.set(nameOf(field), field)
    for (const field of credentials) {
      for (const ref of field.at('spec', 'targetRefs').items()) {
        const { name } = ref.object()
        this.#credentials.set(String(name), field)
      }
    }
    for (const field of backends) this.#convertBackend(field)
  }

  #convertBackend(field: SourceField): void {
    const result = this.#result
    const name = enter(field, result)
    const spec = field.get('spec')
    spec.ignore('type', 'fallback')
    const protocols = spec.texts('appProtocols')
    const tls = tlsOf(spec.get('tls'))
    const policies = compact({
      tls,
      http: protocols.some((text) => text.includes('h2c')) ? { version: 'HTTP2' } : undefined,
    })
    const servers = spec.items('endpoints').flatMap((endpoint) => {
      endpoint.ignore('zone', 'hostname')
      const host = endpoint.at('fqdn', 'hostname').text() ?? endpoint.at('ip', 'address').text()
      const port = endpoint.at('fqdn', 'port').number() ?? endpoint.at('ip', 'port').number()
      if (host === undefined || port === undefined) {
        endpoint.report('lost', 'only endpoints with a host or an IP address are converted')
        return []
      }
      return [{ host, port, policies }]
    })
    if (servers.length === 0) field.report('lost', 'the Backend has no usable endpoint')
    this.#servers.set(name, servers)
    const names = servers.map(({ host, port }, index) => {
      const own = index === 0 ? name : result.nameOf('GatewayBackend', `${name}-${index + 1}`)
      const more = Object.keys(policies).length > 0 ? { policies } : {}
      const content = { spec: { static: { host, port }, ...more } }
      result.create('sluice.dev/v1alpha1', 'GatewayBackend', own, content, field)
      return own
    })
    this.#names.set(name, names)
  }

  /** The GatewayBackends that a Backend has become. */
  namesOf(backend: string): readonly string[] {
    return this.#names.get(backend) ?? [backend]
  }

  /** A reference for settings that have one backend. */
  reference(ref: Fields): Fields {
    const { group, kind, name, ...rest } = ref
    if (group !== 'gateway.envoyproxy.io') return ref
    return kind === 'Backend' ? { ...toBackend(String(name)), ...without(rest, 'port') } : ref
  }

  /** Sets the TLS settings of a Backend, which a BackendTLSPolicy has. */
  secure(backend: string, tls: Fields): void {
    const servers = this.#servers.get(backend) ?? []
    const secured = servers.map((one) => ({ ...one, policies: { ...one.policies, tls } }))
    this.#servers.set(backend, secured)
  }

  /** The servers of a reference to a Backend or a Service, in the namespace of the object that is converted. */
  serversOf({ kind, name, port }: Fields): readonly Server[] {
    const known = this.#servers.get(String(name))
    if (kind === 'Backend' || known !== undefined) return known ?? []
    const host = `${String(name)}.${this.#result.namespace ?? 'default'}.svc`
    return [{ host, port: Number(port ?? 80), policies: {} }]
  }

  /** Rules of a route with references to GatewayBackends. */
  convertRules(rules: unknown, field: SourceField): unknown {
    if (!Array.isArray(rules)) return rules
    return rules.map((rule: unknown) => {
      if (!isObject(rule)) return rule
      const refs = Array.isArray(rule.backendRefs) ? (rule.backendRefs as Fields[]) : undefined
      const filters = Array.isArray(rule.filters) ? (rule.filters as Fields[]) : undefined
      return compact({
        ...rule,
        filters: filters?.filter((filter) => this.#isKnown(filter, field)),
        backendRefs: refs?.flatMap((ref) => this.#spread(ref)),
      })
    })
  }

  /** HTTPRouteFilter of Envoy Gateway: the whole route would mean something else without it. */
  #isKnown(filter: Fields, field: SourceField): boolean {
    if (filter.type !== 'ExtensionRef') return true
    field.report('protection', 'the filter ExtensionRef has no counterpart')
    return false
  }

  /** One reference for each endpoint of a Backend. */
  #spread(ref: Fields): Fields[] {
    if (ref.group !== 'gateway.envoyproxy.io' || ref.kind !== 'Backend') return [ref]
    const names = this.namesOf(String(ref.name))
    return names.map((name) => ({ ...without(ref, 'port'), ...toBackend(name) }))
  }

  /** The provider of an AIServiceBackend; reports and returns undefined if it cannot be converted. */
  provider(name: string, model: string | undefined, origin: SourceField): Fields | undefined {
    const service = this.#services.get(name)
    if (service === undefined) {
      return origin.report('lost', `the AIServiceBackend ${name} is not among the files`)
    }
    const spec = service.get('spec')
    const schema = spec.at('schema', 'name').text() ?? ''
    const version = spec.at('schema', 'version').text()
    const prefix = spec.at('schema', 'prefix').text()
    for (const mutation of ['headerMutation', 'bodyMutation']) {
      spec.get(mutation).lose('requests to providers are not changed')
    }
    const backend = spec.object('backendRef')
    const [server] = this.serversOf(backend)
    if (server === undefined) {
      return spec.report('lost', `the Backend ${String(backend.name)} has no usable endpoint`)
    }
    const { host, port, policies } = server
    const isTls = policies.tls !== undefined
    const isVendor = /(openai\.com|anthropic\.com|googleapis\.com|amazonaws\.com)$/.test(host)
    const provider = entryOf(providers, schema)
    const credentials = this.#credentials.get(name)?.get('spec')
    const base = `${isTls || port === 443 ? 'https' : 'http'}://${host}:${port}${prefix ?? ''}`
    const { auth, region, project } = this.#auth(name, credentials)
    if (provider === undefined) {
      return spec.get('schema').report('lost', `the schema ${schema} is not supported`)
    }
    return providerOf(
      {
        provider,
        model,
        base: isVendor && prefix === undefined ? undefined : base,
        apiVersion: provider === 'azure' ? version : undefined,
        project,
        region,
        auth,
      },
      service,
    )
  }

  #auth(
    name: string,
    spec: SourceField | undefined,
  ): { auth?: Fields; region?: string; project?: string } {
    const result = this.#result
    if (spec === undefined) return {}
    const type = spec.text('type') ?? ''
    if (type === 'AWSCredentials') {
      const region = spec.at('awsCredentials', 'region').text() ?? 'us-east-1'
      const file = spec.at('awsCredentials', 'credentialsFile')
      const secret = file.get('secretRef')
      const source = secret.isSet ? String(secret.object().name) : undefined
      return { region, auth: source === undefined ? {} : this.#awsAuth(name, source, secret) }
    }
    const section = {
      APIKey: 'apiKey',
      AzureAPIKey: 'azureAPIKey',
      AnthropicAPIKey: 'anthropicAPIKey',
    }[type]
    if (section === undefined) {
      spec.get('type').report('lost', `credentials of type ${type} are not converted`)
      spec.take()
      return {}
    }
    const ref = spec.at(section, 'secretRef')
    const source = String(ref.object().name)
    const entries = result.secretEntries(source, result.namespace)
    const key = entries?.apiKey ?? entries?.['api-key']
    const values = { Authorization: (key ?? `REPLACE_WITH_apiKey_of_${source}`).trim() }
    const secretName = result.secretName(`${name}-key`, values)
    const reason =
      key === undefined
        ? `Secret ${secretName} waits for "apiKey" of Secret ${source}: replace its placeholder`
        : `the key of Secret ${source} is now in Secret ${secretName}`
    ref.report('secret', reason)
    return { auth: { secretRef: addSecret(result, secretName, values, ref) } }
  }

  /** Reads a credentials file of AWS. */
  #awsAuth(name: string, source: string, origin: SourceField): Fields {
    const result = this.#result
    const file = result.secretEntries(source, result.namespace)?.credentials ?? ''
    const value = (key: string) => new RegExp(`^\\s*${key}\\s*=\\s*(\\S+)`, 'm').exec(file)?.[1]
    const values = compact({
      accessKey: value('aws_access_key_id') ?? 'REPLACE_WITH_aws_access_key_id',
      secretKey: value('aws_secret_access_key') ?? 'REPLACE_WITH_aws_secret_access_key',
      sessionToken: value('aws_session_token'),
    }) as Record<string, string>
    const secretName = result.secretName(`${name}-aws`, values)
    origin.report('secret', `the keys of Secret ${source} are now in Secret ${secretName}`)
    return { aws: { secretRef: addSecret(result, secretName, values, origin) } }
  }
}

function without(fields: Fields, name: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name))
}

function tlsOf(tls: SourceField): Fields | undefined {
  if (!tls.isSet) return undefined
  tls.ignore('wellKnownCACertificates', 'autoSNIFromEndpointHostname')
  const refs = tls.items('caCertificateRefs')
  const isUnverified = tls.flag('insecureSkipVerify') === true
  return compact({
    insecureSkipVerify: isUnverified ? 'All' : undefined,
    sni: tls.text('sni'),
    caCertificateRefs:
      refs.length > 0 ? refs.slice(0, 1).map((ref) => ({ name: ref.object().name })) : undefined,
  })
}
