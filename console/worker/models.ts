/** The view-models, by name. Each is a pure function of a moment and the parameters of its view. */
import { diffModel } from '../views/diff/model.ts'
import { expectationModel } from '../views/object/expectation.ts'
import { objectModel } from '../views/object/model.ts'
import { objectsModel } from '../views/objects/model.ts'
import { searchModel } from '../views/objects/search.ts'
import { overviewModel } from '../views/overview/model.ts'
import { eventModel, rowsModel, timelineModel } from '../views/timeline/model.ts'
import { topologyModel } from '../views/topology/model.ts'

export const models = {
  overview: overviewModel,
  objects: objectsModel,
  search: searchModel,
  object: objectModel,
  expectation: expectationModel,
  topology: topologyModel,
  timeline: timelineModel,
  rows: rowsModel,
  event: eventModel,
  diff: diffModel,
}

export type Models = typeof models
