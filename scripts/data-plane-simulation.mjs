// `npm run data-plane-simulation [-- --seed N | --seeds FROM..TO] [--minutes M]`: the data plane of a
// worker with clients and upstreams on virtual connections and a virtual clock.
// Exit code: 0 every seed passes, 1 one fails, 2 wrong usage.
import { runSimulation } from './run-simulation.mjs'

await runSimulation('data-plane-simulation')
