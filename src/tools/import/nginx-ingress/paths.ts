/** Reads the hosts, paths and backends of an Ingress. */
import { isObject } from '../../../ground/base/json-object.ts'
import type { Fields } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { fieldsOf, objectKind } from '../source.ts'

export interface IngressPath {
  /** Empty for every host. */
  readonly host: string
  readonly path: string
  readonly type: string
  readonly backend: Fields
  readonly field: SourceField
  /** The same for the path of a canary and that of the Ingress that it belongs to. */
  readonly key: string
}

/** The named ports of the Services among the documents. */
export class Services {
  readonly #ports = new Map<string, number>()

  constructor(documents: readonly SourceDocument[]) {
    for (const document of documents) {
      if (objectKind(document)?.kind !== 'Service') continue
      const { metadata, spec } = fieldsOf(document)
      const { name, namespace } = (isObject(metadata) ? metadata : {}) as Fields
      const ports = isObject(spec) && Array.isArray(spec.ports) ? (spec.ports as Fields[]) : []
      for (const port of ports.filter(isObject)) {
        if (typeof port.port === 'number')
          this.#ports.set(`${namespace}/${name}/${port.name}`, port.port)
      }
    }
  }

  portOf(namespace: string | undefined, service: string, port: string): number | undefined {
    return this.#ports.get(`${namespace}/${service}/${port}`)
  }
}

export function pathsOf(
  spec: SourceField,
  namespace: string | undefined,
  services: Services,
): IngressPath[] {
  const readBackend = (backend: SourceField) => backendOf(backend, namespace, services)
  const make = (
    host: string,
    path: string,
    type: string,
    ref: Fields | undefined,
    field: SourceField,
  ) => {
    const key = `${namespace ?? ''} ${host} ${path.replace(/(.)\/$/, '$1')}`
    return ref === undefined ? [] : [{ host, path, type, backend: ref, field, key }]
  }
  const fallback = spec.get('defaultBackend')
  const common = fallback.isSet ? make('', '/', 'Prefix', readBackend(fallback), fallback) : []
  const rules = spec.items('rules').flatMap((rule) =>
    rule
      .at('http', 'paths')
      .items()
      .flatMap((item) => {
        const host = rule.text('host') ?? ''
        const type = item.text('pathType') ?? 'ImplementationSpecific'
        const path = item.text('path') ?? '/'
        return make(host, path, type, readBackend(item.get('backend')), item.get('path'))
      }),
  )
  return [...common, ...rules]
}

function backendOf(
  backend: SourceField,
  namespace: string | undefined,
  services: Services,
): Fields | undefined {
  const service = backend.get('service')
  const name = service.text('name')
  if (name === undefined) return backend.report('route', 'the backend is not a Service')
  const portName = service.at('port', 'name').text()
  const port =
    portName === undefined
      ? service.at('port', 'number').number()
      : services.portOf(namespace, name, portName)
  if (port === undefined) {
    const reason = 'add the Service to the files, since the number of a named port is unknown'
    return service.get('port').report('route', reason)
  }
  return { name, port }
}
