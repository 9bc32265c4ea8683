/** The settings that proxies get from their controller: its address and their image. */

import { serviceHost } from '../../ground/model/service-host.ts'
import type { ProxyEnvironment } from '../desired/deployment/plan.ts'

interface ControllerAddress {
  readonly version: string
  /** Namespace of the controller. */
  readonly namespace: string
  readonly serviceName: string
  readonly servicePort: number
  readonly clusterDomain: string
  readonly imageRegistry: string
  /** If omitted, the version of the controller. */
  readonly imageTag?: string | undefined
  /** Servers where proxies keep grants of users. If omitted, each proxy has a file. */
  readonly grantStore?: string | undefined
  /** Authorities of the controller's certificate (PEM). If omitted, proxies connect in plaintext. */
  readonly ca?: string | undefined
}

const imageRepository = 'sluice-proxy'

export function proxyEnvironment(place: ControllerAddress): ProxyEnvironment {
  const { version, namespace, serviceName, servicePort, clusterDomain, ca, grantStore } = place
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
    ...(grantStore !== undefined && { grantStore }),
  }
}
