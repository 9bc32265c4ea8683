/** What a controller knows that its proxies need: where they find it, and whose image they run. */
import type { ProxyEnvironment } from '../desired/deployment/index.ts'
import { serviceHost } from '../model/service-host.ts'

interface ControllerPlace {
  readonly version: string
  /** Namespace of the controller. */
  readonly namespace: string
  readonly serviceName: string
  readonly servicePort: number
  readonly clusterDomain: string
  readonly imageRegistry: string
  /** The version of the controller where absent. */
  readonly imageTag?: string | undefined
  /** Authorities of the controller's certificate (PEM); plaintext where absent. */
  readonly ca?: string | undefined
}

const imageRepository = 'sluice-proxy'

export function proxyEnvironment(place: ControllerPlace): ProxyEnvironment {
  const { version, namespace, serviceName, servicePort, clusterDomain, ca } = place
  return {
    version,
    image: {
      registry: place.imageRegistry,
      repository: imageRepository,
      tag: place.imageTag ?? version,
    },
    xds: {
      host: serviceHost(serviceName, namespace, clusterDomain),
      port: servicePort,
      ...(ca !== undefined && { ca }),
    },
  }
}
