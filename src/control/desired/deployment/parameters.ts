/**
 * The parameters of one Gateway: those of its class, overridden field by field by its own. Overlays are
 * not merged; they are applied one after the other.
 */
import type { GatewayParametersSpec } from '../../api/gateway-parameters.ts'
import { isMap } from './strategic-merge.ts'

type Spec = GatewayParametersSpec
export type EnvVar = NonNullable<Spec['env']>[number]
export type Resources = NonNullable<Spec['resources']>

const overlayNames = [
  'deployment',
  'daemonSet',
  'service',
  'serviceAccount',
  'podDisruptionBudget',
  'horizontalPodAutoscaler',
] as const
export type OverlayName = (typeof overlayNames)[number]

/** The parameters of one level (GatewayClass or Gateway), and their name in messages. */
export interface ParametersLevel {
  /** Name in messages, such as `GatewayParameters default/small`. */
  readonly name: string
  readonly spec: Spec
}

export interface NamedOverlay {
  readonly from: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: Readonly<Record<string, unknown>>
}

/** Everything that determines a Gateway's proxy, except overlays. */
export type ProxyParameters = Omit<Spec, OverlayName>

/** Merges `image`, `logging` or `mesh` by field; `b`, the Gateway's value, overrides `a`. */
function joined<Part extends object>(a: Part | undefined, b: Part | undefined): Part | undefined {
  return a === undefined || b === undefined ? (b ?? a) : { ...a, ...b }
}

/** Merges variables by name; the last one wins. A variable of the class keeps its position. */
function joinEnv(
  below: readonly EnvVar[] | undefined,
  above: readonly EnvVar[] | undefined,
): readonly EnvVar[] {
  return [...new Map([...(below ?? []), ...(above ?? [])].map((one) => [one.name, one])).values()]
}

/** Merges requests and limits by resource name; claims are replaced as a whole. */
export function joinResources(
  below: Resources | undefined,
  above: Resources | undefined,
): Resources | undefined {
  if (below === undefined || above === undefined) return above ?? below
  const requests = joined(below.requests, above.requests)
  const limits = joined(below.limits, above.limits)
  return { ...below, ...above, ...(requests && { requests }), ...(limits && { limits }) }
}

/** Merges the image and the resources by field. */
function joinStdio(below: Spec['stdio'], above: Spec['stdio']): Spec['stdio'] {
  if (below === undefined || above === undefined) return above ?? below
  const image = joined(below.image, above.image)
  const resources = joinResources(below.resources, above.resources)
  return { ...below, ...above, ...(image && { image }), ...(resources && { resources }) }
}

/** `levels` starts with the class's. The last `shutdown` and the last `rawConfig` replace earlier ones. */
export function joinParameters(levels: readonly ParametersLevel[]): ProxyParameters {
  return levels.reduce<ProxyParameters>((below, { spec: above }) => {
    const env = joinEnv(below.env, above.env)
    return {
      logging: joined(below.logging, above.logging),
      image: joined(below.image, above.image),
      mesh: joined(below.mesh, above.mesh),
      resources: joinResources(below.resources, above.resources),
      ...(env.length > 0 && { env }),
      rawConfig: above.rawConfig ?? below.rawConfig,
      shutdown: above.shutdown ?? below.shutdown,
      workload: above.workload ?? below.workload,
      stdio: joinStdio(below.stdio, above.stdio),
      modelCatalog: above.modelCatalog ?? below.modelCatalog,
    }
  }, {})
}

export type Overlays = Readonly<Partial<Record<OverlayName, readonly NamedOverlay[]>>>

/** The overlays of each kind of object, in the order in which they are applied. */
export function overlaysOf(levels: readonly ParametersLevel[]): Overlays {
  const overlays: Partial<Record<OverlayName, NamedOverlay[]>> = {}
  for (const { name, spec } of levels) {
    for (const target of overlayNames) {
      const overlay = spec[target]
      if (overlay === undefined) continue
      const { labels, annotations } = overlay.metadata ?? {}
      const all = overlays[target] ?? []
      overlays[target] = all
      all.push({
        from: `${name}: spec.${target}`,
        ...(labels && { labels }),
        ...(annotations && { annotations }),
        ...(isMap(overlay.spec) && { spec: overlay.spec }),
      })
    }
  }
  return overlays
}
