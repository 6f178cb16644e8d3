/** How a queue gets the values that Harvester takes from CRIC, for messages about those that it lacks. */
export const howFromCric = "CRIC's values come by panda_queues.json in cacher.data of the settings";
