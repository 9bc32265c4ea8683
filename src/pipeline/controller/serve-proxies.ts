/** The configuration server of a controller, with the proofs and certificates of a cluster. */
import type { KubeClient } from '../../kube/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import type { ProxyAnswers } from '../../xds/answers.ts'
import { startXdsServer, type XdsServer } from '../../xds/server.ts'
import { verifyServiceAccount } from './verify.ts'
import { readAuthorities, servedPair } from './xds-certificate.ts'

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
  const { xdsTls, xdsTlsDir } = settings
  // A server that no proxy can be told to believe is no use, and never plaintext instead.
  if (xdsTls) readAuthorities(xdsTlsDir)
  return startXdsServer({
    address: settings.xdsAddress,
    answers,
    verify: verifyServiceAccount(client, isInCluster),
    ...(xdsTls && { tls: servedPair(xdsTlsDir, onProblem) }),
    onNotice: onProblem,
  })
}
