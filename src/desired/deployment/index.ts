export type { Deployment, ProxyEnvironment, ProxyPlan, RenderedObject } from './plan.ts'
export { anyEnvironment } from './plan.ts'
export { renderProxy } from './render.ts'
