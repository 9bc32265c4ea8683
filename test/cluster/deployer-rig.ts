/** A controller that deploys proxies, in a real API server. */

import { beforeAll } from 'vitest'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { controllerRules, deployerRules, TestCluster } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { Deployed } from '../support/deployed.ts'
import { useFixture } from '../support/fixture.ts'

/** Server-side apply makes null of a spec that loses all that it has. */
export const plain = { logging: { level: 'info' } }
export const always = ['ServiceAccount', 'ConfigMap', 'Service', 'Deployment'] as const

export const deployerParts = [...apiServerParts, 'gateway-api-crds'] as const

/** One API server and one controller for the tests of a `describe`. */
export function useDeployer() {
  const cluster = useFixture(
    async () => new TestCluster(await startApiServer()).install(),
    ({ server }) => server.stop(),
  )
  const controller = useFixture(async () =>
    new ControllerProcess({
      kubeconfig: await cluster.account('controller', [...controllerRules(), ...deployerRules()]),
      env: { SLUICE_XDS_SERVICE_NAME: 'sluice', SLUICE_PROXY_IMAGE_TAG: '1.2.3' },
    }).start(),
  )
  const deployed = useFixture(() => new Deployed(cluster))
  beforeAll(() => cluster.condition('GatewayClass', 'agentgateway', 'Accepted=True'))
  return { cluster, controller, deployed }
}
