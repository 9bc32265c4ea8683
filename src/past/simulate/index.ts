/** Simulates what a proxy decides about requests, without a socket. */
export { Simulator, type SimulatorOptions } from './simulator.ts'
export {
  requestOf,
  type SimulatedHeader,
  type SimulatedOutcome,
  type SimulatedRequest,
  type SimulatedStep,
  type Simulation,
} from './types.ts'
