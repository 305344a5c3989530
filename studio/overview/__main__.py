"""Write the files of the Overview anew: ``python -m studio.overview``."""

from studio.jobs.overview import SNAPSHOT, compare
from studio.jobs.results import open_view
from studio.overview import worst_tests
from studio.state.setup import DEFAULT

view = open_view(DEFAULT)
SNAPSHOT.write_text(compare(view).to_json(), encoding="utf-8")
worst_tests.write(view)
