/** Simulates what a proxy decides about requests, without a socket. */
export { Simulator, type SimulatorOptions } from './simulator.ts'
export {
  requestOf,
  type SimulatedHeader,
  type SimulatedRequest,
  type Simulation,
} from './types.ts'
