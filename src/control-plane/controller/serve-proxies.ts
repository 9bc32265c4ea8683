/** The configuration server of a controller, with the proofs and certificates of a cluster. */
import type { KubeClient } from '../../kube/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import type { ProxyAnswers } from '../../xds/answers.ts'
import { startXdsServer, type XdsServer } from '../../xds/server.ts'
import { verifyServiceAccount } from './verify.ts'
import { servedCertificate } from './xds-certificate.ts'

export interface ServeProxiesOptions {
  readonly client: KubeClient
  readonly settings: Pick<ControllerSettings, 'xdsAddress' | 'xdsTls' | 'xdsTlsDir'>
  readonly isInCluster: boolean
  readonly say: (severity: 'warn', text: string) => void
}

/** @throws where the address cannot be bound, or the certificate that is asked for is not there */
export async function serveProxies(
  { client, settings, isInCluster, say }: ServeProxiesOptions,
  answers: ProxyAnswers,
): Promise<XdsServer> {
  const onProblem = (text: string) => say('warn', text)
  return startXdsServer({
    address: settings.xdsAddress,
    answers,
    verify: verifyServiceAccount(client, isInCluster),
    ...(settings.xdsTls && { tls: servedCertificate(settings.xdsTlsDir, onProblem) }),
    onNotice: onProblem,
  })
}
