/** Reads the services of routes: Services, and the TraefikServices that distribute requests to several. */
import { gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { namesOf } from '../kubernetes.ts'
import { Services } from '../nginx-ingress/paths.ts'

export class TraefikServices {
  readonly #result: Conversion
  readonly #ports: Services
  readonly #weighted = new Map<string, SourceField>()

  constructor(
    documents: readonly SourceDocument[],
    weighted: readonly SourceField[],
    result: Conversion,
  ) {
    this.#result = result
    this.#ports = new Services(documents)
    for (const field of weighted) {
      const { name, namespace } = namesOf(field)
      this.#weighted.set(`${namespace ?? ''}/${name}`, field)
    }
  }

  /** Returns the backends of a list of services, with their weights. */
  backends(services: readonly SourceField[], namespace: string | undefined, depth = 0): Fields[] {
    return services.flatMap((service) => {
      const weight = service.number('weight') ?? 1
      const found = this.#backendsOf(service, namespace, depth)
      // If a service has several backends, they divide its weight.
      const total = found.reduce((sum, { weight: own }) => sum + Number(own), 0)
      const scale = found.length > 1 ? 100 : 1
      return found.map((ref) => ({
        ...ref,
        weight:
          found.length > 1
            ? Math.round((weight * scale * Number(ref.weight)) / Math.max(1, total))
            : weight * scale,
      }))
    })
  }

  #backendsOf(service: SourceField, home: string | undefined, depth: number): Fields[] {
    const name = service.text('name') ?? ''
    const namespace = service.text('namespace') ?? home
    service.get('sticky').lose('use sessionPersistence of the route')
    service.get('passHostHeader').lose('backends get the host of the request')
    service.ignore('responseForwarding', 'strategy', 'nativeLB', 'nodePortLB', 'healthCheck')
    service
      .get('serversTransport')
      .lose('write a BackendTLSPolicy or a GatewayPolicy', 'protection')
    if (service.text('kind') === 'TraefikService') {
      return this.#weightedOf(service, `${namespace ?? ''}/${name}`, namespace, depth)
    }
    const port = this.#portOf(service, name, namespace)
    if (port === undefined) return []
    if (service.text('scheme') === 'https') this.#useTls(name, namespace, service)
    this.#grant(name, namespace, home, service)
    return [
      compact({ name, namespace: namespace === home ? undefined : namespace, port, weight: 1 }),
    ]
  }

  #portOf(service: SourceField, name: string, namespace: string | undefined): number | undefined {
    const text = service.text('port') ?? ''
    const port = /^\d+$/.test(text) ? Number(text) : this.#ports.portOf(namespace, name, text)
    return (
      port ?? service.report('route', `the port of Service ${name} is not known; add the Service`)
    )
  }

  #weightedOf(
    service: SourceField,
    key: string,
    namespace: string | undefined,
    depth: number,
  ): Fields[] {
    const found = this.#weighted.get(key)
    if (found === undefined || depth > 8) {
      service.report('route', `TraefikService ${key.replace(/^\//, '')} is not in these files`)
      return []
    }
    const spec = found.get('spec')
    const mirroring = spec.get('mirroring')
    if (mirroring.isSet) {
      mirroring.get('mirrors').lose('use a RequestMirror filter', 'lost')
      return this.backends([mirroring], namespace, depth + 1)
    }
    return this.backends(spec.at('weighted', 'services').items(), namespace, depth + 1)
  }

  #useTls(name: string, namespace: string | undefined, origin: SourceField): void {
    const target = { group: '', kind: 'Service', name }
    this.#inNamespace(namespace, () => {
      const spec = { targetRefs: [target], backend: { tls: {} } }
      const policyName = this.#result.nameOf('GatewayPolicy', `${namespace ?? ''} ${name} tls`)
      this.#result.create(`${ownGroup}/v1alpha1`, 'GatewayPolicy', policyName, { spec }, origin)
    })
  }

  /** Adds the ReferenceGrant that a Service of another namespace needs. */
  #grant(
    name: string,
    namespace: string | undefined,
    home: string | undefined,
    origin: SourceField,
  ): void {
    if (namespace === undefined || namespace === home) return
    const spec = {
      from: [{ group: gatewayGroup, kind: 'HTTPRoute', namespace: home ?? 'default' }],
      to: [{ group: '', kind: 'Service', name }],
    }
    const grant = this.#result.nameOf('ReferenceGrant', `${home ?? ''} ${namespace} ${name}`)
    this.#inNamespace(namespace, () =>
      this.#result.create(`${gatewayGroup}/v1beta1`, 'ReferenceGrant', grant, { spec }, origin),
    )
  }

  #inNamespace(namespace: string | undefined, work: () => void): void {
    const home = this.#result.namespace
    this.#result.namespace = namespace
    work()
    this.#result.namespace = home
  }
}
