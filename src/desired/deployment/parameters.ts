/**
 * The parameters of one Gateway: those of its class, and over them its own, joined field by field.
 * Overlays are not joined: they are applied one after the other.
 */
import type { GatewayParametersSpec } from '../../api/gateway-parameters.ts'
import { isMap } from './strategic-merge.ts'

type Spec = GatewayParametersSpec
export type EnvVar = NonNullable<Spec['env']>[number]
export type Resources = NonNullable<Spec['resources']>

const overlayNames = [
  'deployment',
  'service',
  'serviceAccount',
  'podDisruptionBudget',
  'horizontalPodAutoscaler',
] as const
export type OverlayName = (typeof overlayNames)[number]

/** The parameters of one level, and what they are called in messages. */
export interface ParametersLevel {
  /** Such as `GatewayParameters default/small`. */
  readonly name: string
  readonly spec: Spec
}

export interface NamedOverlay {
  readonly from: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: Readonly<Record<string, unknown>>
}

/** Everything that shapes the proxy of a Gateway; fields that nobody sets are absent. */
export type ProxyParameters = Omit<Spec, OverlayName>

/** Fields of `image`, `logging` and `mesh` by themselves; the Gateway's win. */
function joined<Part extends object>(a: Part | undefined, b: Part | undefined): Part | undefined {
  return a === undefined || b === undefined ? (b ?? a) : { ...a, ...b }
}

/** By name; of several of one name the last. What the Gateway changes keeps its place. */
function joinEnv(
  below: readonly EnvVar[] | undefined,
  above: readonly EnvVar[] | undefined,
): readonly EnvVar[] {
  return [...new Map([...(below ?? []), ...(above ?? [])].map((one) => [one.name, one])).values()]
}

/** Key by key in requests and in limits; claims as a whole. */
export function joinResources(
  below: Resources | undefined,
  above: Resources | undefined,
): Resources | undefined {
  if (below === undefined || above === undefined) return above ?? below
  const { requests, limits } = {
    requests: joined(below.requests, above.requests),
    limits: joined(below.limits, above.limits),
  }
  return { ...below, ...above, ...(requests && { requests }), ...(limits && { limits }) }
}

/** `levels`: the class's first. `shutdown` and `rawConfig` are taken whole from the last that has them. */
export function joinParameters(levels: readonly ParametersLevel[]): ProxyParameters {
  return levels.reduce<ProxyParameters>((below, { spec: above }) => {
    const { logging, image, mesh } = {
      logging: joined(below.logging, above.logging),
      image: joined(below.image, above.image),
      mesh: joined(below.mesh, above.mesh),
    }
    const resources = joinResources(below.resources, above.resources)
    const env = joinEnv(below.env, above.env)
    const rawConfig = above.rawConfig ?? below.rawConfig
    const shutdown = above.shutdown ?? below.shutdown
    return {
      ...(logging && { logging }),
      ...(image && { image }),
      ...(mesh && { mesh }),
      ...(resources && { resources }),
      ...(env.length > 0 && { env }),
      ...(rawConfig && { rawConfig }),
      ...(shutdown && { shutdown }),
    }
  }, {})
}

export type Overlays = Readonly<Partial<Record<OverlayName, readonly NamedOverlay[]>>>

/** The overlays of each object in the order in which they are applied; absent where nobody has one. */
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
