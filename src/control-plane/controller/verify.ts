/** Decides which proxies get configuration, by the service account of their token. */
import { type KubeClient, reviewToken, serviceAccountOf } from '../../kube/index.ts'
import { type VerifyProxy, verifyLoopback } from '../../xds/verifier.ts'

/** Audience that a proxy's token must be made for. */
const proxyAudience = 'sluice'

/**
 * A token gives the configuration of the Gateway that has the namespace and the name of its service
 * account. Without a token only proxies on the same machine are served, and only where the
 * controller runs beside the cluster and not in it: in a pod's network others may be on loopback.
 */
export function verifyServiceAccount(client: KubeClient, isInCluster: boolean): VerifyProxy {
  return async (credentials) => {
    const { token } = credentials
    if (token === undefined || token === '') {
      return isInCluster ? undefined : verifyLoopback(credentials)
    }
    const identity = await reviewToken(client, token, proxyAudience)
    const gateway = identity && serviceAccountOf(identity.username)
    return gateway === undefined ? undefined : { gateway }
  }
}
