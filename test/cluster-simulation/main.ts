/** The command `npm run cluster-simulation`. */
// The first import: it replaces the clocks before any other module reads them.
import '../virtual-time/globals.ts'
import { commandOf } from '../virtual-time/command.ts'
import { type Outcome, simulate } from './simulation.ts'

export const command = commandOf<Outcome>({
  script: 'cluster-simulation',
  defaultSeeds: '1..10',
  // A round of faults and its calm take up to 6.
  defaultMinutes: 3,
  simulate,
  counts: {
    'virtual hours': ({ virtualMs }) => virtualMs / 3_600_000,
    events: ({ events }) => events,
  },
})
