/** The command `npm run data-plane-simulation`. */
// The first imports: they replace the clocks and sockets before any other module reads them.
import '../virtual-time/globals.ts'
import './sockets.ts'
import { commandOf } from '../virtual-time/command.ts'
import { type Outcome, simulate } from './simulation.ts'

export const command = commandOf<Outcome>({
  script: 'data-plane-simulation',
  defaultSeeds: '1..500',
  // Modules that take random numbers while they are loaded would change the first schedule.
  prepare: () => simulate(0),
  simulate,
  counts: { exchanges: ({ exchanges }) => exchanges },
})
