/** The kinds of workloads that run the proxies of a Gateway. */
import { expect, it } from 'vitest'
import { gateway } from '../support/cluster.ts'
import { parameters, withParameters } from '../support/deployed.ts'
import { describeWithParts } from '../support/parts.ts'
import { deployerParts, plain, useDeployer } from './deployer-rig.ts'

describeWithParts(deployerParts, 'proxies', () => {
  const { cluster, deployed } = useDeployer()

  it('become a DaemonSet and a Deployment again, each deleted when the other can serve', async () => {
    await cluster.apply(parameters('nodes', plain))
    await cluster.apply(gateway('nodes', 'default', withParameters('nodes')))
    await deployed.until('Deployment', 'nodes')
    const onNodes = { workload: { kind: 'DaemonSet' }, podDisruptionBudget: {} }
    await cluster.apply(parameters('nodes', onNodes))
    const { spec } = await deployed.until('DaemonSet', 'nodes')
    expect(spec.updateStrategy.rollingUpdate).toEqual({ maxSurge: '25%', maxUnavailable: 0 })
    const budget = await deployed.until('PodDisruptionBudget', 'nodes')
    expect(budget.spec.minAvailable).toBe(1)
    // The test has no controllers of workloads, so it reports that their pods are available.
    expect(await deployed.read('Deployment', 'nodes')).toBeDefined()
    await deployed.reportPods('DaemonSet', 'nodes', {
      desiredNumberScheduled: 2,
      numberAvailable: 1,
    })
    expect(await deployed.read('Deployment', 'nodes')).toBeDefined()
    await deployed.reportPods('DaemonSet', 'nodes', {
      desiredNumberScheduled: 2,
      numberAvailable: 2,
    })
    await deployed.gone('Deployment', 'nodes')
    const updateStrategy = { type: 'OnDelete' }
    await cluster.apply(
      parameters('nodes', { ...onNodes, daemonSet: { spec: { updateStrategy } } }),
    )
    const changed = await deployed.until(
      'DaemonSet',
      'nodes',
      (one) => one.spec.updateStrategy.type === 'OnDelete',
    )
    expect(changed.spec.updateStrategy).toEqual(updateStrategy)
    await cluster.apply(parameters('nodes', plain))
    await deployed.until('Deployment', 'nodes')
    expect(await deployed.read('DaemonSet', 'nodes')).toBeDefined()
    await deployed.reportPods('Deployment', 'nodes', {
      replicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
    })
    await deployed.gone('DaemonSet', 'nodes')
  })
})
